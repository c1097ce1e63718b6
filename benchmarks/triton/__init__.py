"""Triton kernels of other people: each beside its own autotune list, and a fused MoE recorded whole."""
