"""Kernels taken out of files that hold more than them."""
