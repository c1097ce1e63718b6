"""Kernels and their launches."""
