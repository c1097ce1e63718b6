"""Kernels of a source: definitions and headers, kernels in host strings, uses of their pointers."""
