"""CUDA as HIP."""
