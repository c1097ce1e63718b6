"""Back ends: CUDA, OpenCL, HIP, Triton. Imported inside children only (see `sandbox`)."""
