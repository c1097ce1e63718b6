"""The trust core with real processes, a real compiler and a real OpenCL device."""
