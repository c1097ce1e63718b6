"""Warpsmith: a distributed tuning service for GPU kernels."""

__version__ = "0.1.0"
