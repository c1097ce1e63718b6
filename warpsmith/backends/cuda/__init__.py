"""CUDA: compiled by NVRTC or nvcc, run through PyCUDA."""
