"""Launches with attributes (clusters, cooperative) through cuda-python, since PyCUDA's launches take none."""

import ctypes
from collections.abc import Sequence
from typing import Any

from warpsmith.backends.base import Bound
from warpsmith.backends.cuda.arguments import parameter_places
from warpsmith.backends.cuda.graph import GraphTimer
from warpsmith.domain.jobs.launch_size import LaunchSize

PORTABLE_BLOCKS = 8
"""Blocks of a cluster that every device with clusters takes; more must be permitted for the function."""


class DriverRefusal(Exception):
    """The driver's word for what failed, such as CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE."""


class ExtendedLaunch:
    """Launches one function of a PyCUDA module with attributes."""

    def __init__(self, timer: GraphTimer, function: Any) -> None:
        """`function` is the driver's handle; `GraphTimer.function_of` finds it."""
        self._timer = timer
        self._function = function

    def enqueue(self, size: LaunchSize, arguments: Sequence[Bound]) -> None:
        """Launch on the timer's stream.

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
        # By the address of each: the driver takes no buffer of all parameters for cooperative launches. It
        # copies them during the call, also while a graph is captured.
        contents, places = parameter_places(arguments)
        data = ctypes.create_string_buffer(contents, max(1, len(contents)))
        addresses = (ctypes.c_void_p * max(1, len(places)))(*(ctypes.addressof(data) + p for p in places))
        self._must(cu.cuLaunchKernelEx(config, self._function, ctypes.addressof(addresses), 0))

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
