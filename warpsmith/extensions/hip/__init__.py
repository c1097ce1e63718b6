"""HIP: for NVIDIA devices through CUDA, for AMD's through clang or hipRTC. Not run on AMD hardware."""
