"""Back ends: CUDA, OpenCL. Imported inside children only (see `sandbox`)."""
