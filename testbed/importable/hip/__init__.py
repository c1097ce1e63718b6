"""hip-python's package: here with a stand-in over CUDA's driver."""
