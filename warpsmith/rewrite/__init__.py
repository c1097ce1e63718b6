"""Syntax trees of CUDA and OpenCL source, and the rules that introduce parameters."""
