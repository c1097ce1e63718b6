"""Triton: compiled without torch, run as CUDA's binaries are."""
