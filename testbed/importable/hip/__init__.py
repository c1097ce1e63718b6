"""What hip-python's package of this name offers: here a stand-in over CUDA's driver."""

from testbed.hip_python import over_cuda as hip

__all__ = ["hip"]
