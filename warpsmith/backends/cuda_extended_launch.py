"""Launches with attributes (clusters, cooperative) through cuda-python, since PyCUDA's launches take none."""

import ctypes
from typing import Any

from warpsmith.backends.cuda_graph import GraphTimer
from warpsmith.domain.plan import LaunchSize

PORTABLE_BLOCKS = 8
"""Blocks of a cluster that every device with clusters takes; more must be permitted for the function."""
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0
"""Words of the driver before the address and the size of all parameters in one buffer."""


class DriverRefusal(Exception):
    """The driver's word for what failed, such as CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE."""


class ExtendedLaunch:
    """Launches one function of a PyCUDA module with attributes."""

    def __init__(self, timer: GraphTimer, function: Any) -> None:
        """`function` is the driver's handle; `GraphTimer.function_of` finds it."""
        self._timer = timer
        self._function = function

    def enqueue(self, size: LaunchSize, parameters: bytes) -> None:
        """Launch on the timer's stream.

        Args:
            parameters: all arguments, each at its place.

        Raises:
            DriverRefusal: the driver refused the launch, or the device has faulted.
        """
        cu = self._timer.bindings
        config = cu.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = size.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = size.block
        config.sharedMemBytes = size.shared_bytes
        config.hStream = self._timer.stream
        attributes = self._attributes(size)
        config.attrs, config.numAttrs = attributes, len(attributes)
        # The driver copies the parameters during the call, also while a graph is captured.
        data = ctypes.create_string_buffer(parameters, max(1, len(parameters)))
        length = ctypes.c_size_t(len(parameters))
        extra = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(data), _BUFFER_SIZE, ctypes.addressof(length), _END
        )
        self._must(cu.cuLaunchKernelEx(config, self._function, 0, ctypes.addressof(extra)))

    def _attributes(self, size: LaunchSize) -> list[Any]:
        cu = self._timer.bindings
        attributes = []
        if size.cooperative:
            cooperative = cu.CUlaunchAttribute()
            cooperative.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            cooperative.value.cooperative = 1
            attributes.append(cooperative)
        if size.cluster != (1, 1, 1):
            cluster = cu.CUlaunchAttribute()
            cluster.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            extents = cluster.value.clusterDim
            extents.x, extents.y, extents.z = size.cluster
            attributes.append(cluster)
            if size.cluster[0] * size.cluster[1] * size.cluster[2] > PORTABLE_BLOCKS:
                allowed = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                self._must(cu.cuFuncSetAttribute(self._function, allowed, 1))
        return attributes

    def _must(self, result: tuple[Any, ...]) -> None:
        if result[0] != self._timer.bindings.CUresult.CUDA_SUCCESS:
            raise DriverRefusal(result[0].name)
