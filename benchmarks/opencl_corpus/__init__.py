"""OpenCL kernels that others wrote: fetched at named commits, made into jobs by `init`, tuned on PoCL."""
