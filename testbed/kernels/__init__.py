"""Kernels for tests and benches, and their spellings."""
