"""OpenCL: GPUs, and CPUs through PoCL."""
