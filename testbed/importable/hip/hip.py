"""What hip-python's module of this name offers: here a stand-in over CUDA's driver.

Importing it starts that driver, which it does not do in a process that gave up its rights. The package alone
starts nothing: a fork server imports it, and a driver does not survive a fork.
"""

import sys

from testbed.hip_python import over_cuda

over_cuda.hipGetDeviceCount()
sys.modules[__name__] = over_cuda
