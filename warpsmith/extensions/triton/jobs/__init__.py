"""Kernels in Triton, read from their Python text. Nothing of a file is imported or run."""
