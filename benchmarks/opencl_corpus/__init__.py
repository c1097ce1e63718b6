"""OpenCL kernels that others wrote: fetched at named commits and made into jobs."""
