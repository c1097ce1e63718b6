"""A stand-in for `hip.hip` of hip-python over CUDA's driver: the same names, tuples and arguments.

It runs the code of HIP's back end on an NVIDIA GPU, with cubins in place of code objects. It shows that this
code uses the interface as recorded, and shows nothing of AMD.
"""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from cuda.bindings import driver as cu

from testbed.hip_python.interface import (
    HIP_LAUNCH_PARAM_BUFFER_POINTER,
    HIP_LAUNCH_PARAM_BUFFER_SIZE,
    HIP_LAUNCH_PARAM_END,
    hipDeviceAttribute_t,
    hipError_t,
    hipStreamCaptureMode,
    hipStreamDefault,
)

__all__ = [
    "HIP_LAUNCH_PARAM_BUFFER_POINTER",
    "HIP_LAUNCH_PARAM_BUFFER_SIZE",
    "HIP_LAUNCH_PARAM_END",
    "hipDeviceAttribute_t",
    "hipError_t",
    "hipStreamCaptureMode",
    "hipStreamDefault",
]

_KINDS = cu.CUdevice_attribute
_ATTRIBUTES = {
    hipDeviceAttribute_t.hipDeviceAttributeL2CacheSize: _KINDS.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    hipDeviceAttribute_t.hipDeviceAttributeMaxBlockDimX: _KINDS.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    hipDeviceAttribute_t.hipDeviceAttributeMaxBlockDimY: _KINDS.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    hipDeviceAttribute_t.hipDeviceAttributeMaxBlockDimZ: _KINDS.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    hipDeviceAttribute_t.hipDeviceAttributeMaxGridDimX: _KINDS.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    hipDeviceAttribute_t.hipDeviceAttributeMaxGridDimY: _KINDS.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    hipDeviceAttribute_t.hipDeviceAttributeMaxGridDimZ: _KINDS.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    hipDeviceAttribute_t.hipDeviceAttributeMaxRegistersPerBlock: (
        _KINDS.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK
    ),
    # All of AMD's local memory is a block's without being asked for; see `_launch`.
    hipDeviceAttribute_t.hipDeviceAttributeMaxSharedMemoryPerBlock: (
        _KINDS.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    ),
    hipDeviceAttribute_t.hipDeviceAttributeMaxThreadsPerBlock: (
        _KINDS.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    ),
    hipDeviceAttribute_t.hipDeviceAttributeMaxThreadsPerMultiProcessor: (
        _KINDS.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
    ),
    hipDeviceAttribute_t.hipDeviceAttributeMultiprocessorCount: (
        _KINDS.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    ),
    hipDeviceAttribute_t.hipDeviceAttributeWarpSize: _KINDS.CU_DEVICE_ATTRIBUTE_WARP_SIZE,
}
DEFAULT_SHARED_BYTES = 48 << 10
Result = tuple[Any, ...]


def _as_hip(result: Result, wrap: Callable[..., Result] | None = None, values: int = 0) -> Result:
    """A result of CUDA's driver with HIP's error; if it failed, with None for each value."""
    status, *found = result
    known = {int(error): error for error in hipError_t}
    error = known.get(int(status), hipError_t.hipErrorUnknown)
    if error is not hipError_t.hipSuccess:
        return (error, *(None for _ in range(values)))
    return (error, *(wrap(*found) if wrap is not None else ()))


def _one(value: Any) -> Result:
    return (value,)


def _number(value: Any) -> Result:
    return (int(value),)


def _count() -> Result:
    started: Result = cu.cuInit(0)
    found: Result = cu.cuDeviceGetCount()
    return started if int(started[0]) else found


def hipGetDeviceCount() -> Result:
    """See hip-python."""
    return _as_hip(_count(), _number, 1)


def hipSetDevice(deviceId: int) -> Result:
    """See hip-python; the device's primary context becomes current."""
    _count()
    found = cu.cuDevicePrimaryCtxRetain(deviceId)
    return _as_hip(found if int(found[0]) else cu.cuCtxSetCurrent(found[1]))


def hipGetDeviceProperties(deviceId: int) -> Result:
    """See hip-python; the architecture is CUDA's."""
    _count()
    named, found = cu.cuDeviceGetName(128, deviceId), cu.cuDeviceGetUuid(deviceId)
    parts = [
        cu.cuDeviceGetAttribute(kind, deviceId)
        for kind in (
            _KINDS.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            _KINDS.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    ]
    failed = next((r for r in (named, found, *parts) if int(r[0])), None)
    if failed is not None:
        return _as_hip(failed, None, 1)
    name = named[1].split(b"\0")[0].decode()
    return hipError_t.hipSuccess, SimpleNamespace(
        name=name,
        gcnArchName=f"sm_{parts[0][1]}{parts[1][1]}",
        uuid=SimpleNamespace(bytes=bytes(found[1].bytes)),
    )


def hipDeviceGetAttribute(attr: hipDeviceAttribute_t, deviceId: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuDeviceGetAttribute(_ATTRIBUTES[attr], deviceId), _number, 1)


def hipDeviceTotalMem(device: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuDeviceTotalMem(device), _number, 1)


def hipRuntimeGetVersion() -> Result:
    """See hip-python; CUDA's version in HIP's form."""
    _count()
    found = cu.cuDriverGetVersion()
    return _as_hip(found, lambda v: (v // 1000 * 10_000_000 + v % 1000 // 10 * 100_000,), 1)


def hipMalloc(size: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemAlloc(size), _one, 1)


def hipFree(ptr: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemFree(ptr))


def hipMemcpyHtoD(dst: int, src: int, sizeBytes: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemcpyHtoD(dst, src, sizeBytes))


def hipMemcpyDtoH(dst: int, src: int, sizeBytes: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemcpyDtoH(dst, src, sizeBytes))


def hipMemcpyDtoD(dst: int, src: int, sizeBytes: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemcpyDtoD(dst, src, sizeBytes))


def hipMemsetD8(dest: int, value: int, count: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemsetD8(dest, value, count))


def hipMemsetD16(dest: int, value: int, count: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuMemsetD16(dest, value, count))


def hipMemsetD32(dest: int, value: int, count: int) -> Result:
    """See hip-python; the value is a signed int."""
    word = ctypes.c_int(value)
    if word.value != value:
        raise OverflowError(f"{value} is no C int")
    return _as_hip(cu.cuMemsetD32(dest, value & 0xFFFFFFFF, count))


def hipModuleLoadData(image: int) -> Result:
    """See hip-python; the image is a cubin, by its address."""
    return _as_hip(cu.cuModuleLoadData(image), _one, 1)


def hipModuleUnload(module: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuModuleUnload(module))


def hipModuleGetFunction(module: Any, kname: bytes) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuModuleGetFunction(module, kname), _one, 1)


def hipModuleGetGlobal(hmod: Any, name: bytes) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuModuleGetGlobal(hmod, name), lambda address, size: (address, int(size)), 2)


def hipModuleLaunchKernel(  # noqa: PLR0913  hip-python's parameters
    f: Any,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    stream: Any,
    kernelParams: int | None,
    extra: int | None,
) -> Result:
    """See hip-python. `extra` has the values of CUDA's form, except of the one that ends it."""
    refused = _share(f, sharedMemBytes)
    if refused is not None:
        return refused
    words: Any = None
    if extra is not None:
        given = (ctypes.c_void_p * 5).from_address(extra)
        names = HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END
        if (given[0], given[2], given[4]) != names:
            return (hipError_t.hipErrorInvalidValue,)
        words = (ctypes.c_void_p * 5)(1, given[1], 2, given[3], 0)
    grid, block = (gridDimX, gridDimY, gridDimZ), (blockDimX, blockDimY, blockDimZ)
    at = 0 if words is None else ctypes.addressof(words)
    return _as_hip(cu.cuLaunchKernel(f, *grid, *block, sharedMemBytes, stream, kernelParams or 0, at))


def hipModuleLaunchCooperativeKernel(  # noqa: PLR0913  hip-python's parameters
    f: Any,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    stream: Any,
    kernelParams: int | None,
) -> Result:
    """See hip-python."""
    refused = _share(f, sharedMemBytes)
    if refused is not None:
        return refused
    grid, block = (gridDimX, gridDimY, gridDimZ), (blockDimX, blockDimY, blockDimZ)
    return _as_hip(cu.cuLaunchCooperativeKernel(f, *grid, *block, sharedMemBytes, stream, kernelParams or 0))


def _share(function: Any, size_bytes: int) -> Result | None:
    """Permit a block its shared memory, which a launch of HIP need not; the refusal, if it is one."""
    if size_bytes <= DEFAULT_SHARED_BYTES:
        return None
    kind = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    found = _as_hip(cu.cuFuncSetAttribute(function, kind, size_bytes))
    return found if found[0] is not hipError_t.hipSuccess else None


def hipStreamCreateWithFlags(flags: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuStreamCreate(flags), _one, 1)


def hipStreamDestroy(stream: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuStreamDestroy(stream))


def hipStreamSynchronize(stream: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuStreamSynchronize(stream))


def hipStreamBeginCapture(stream: Any, mode: hipStreamCaptureMode) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode(int(mode))))


def hipStreamEndCapture(stream: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuStreamEndCapture(stream), _one, 1)


def hipGraphInstantiateWithFlags(graph: Any, flags: int) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuGraphInstantiate(graph, flags), _one, 1)


def hipGraphUpload(graphExec: Any, stream: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuGraphUpload(graphExec, stream))


def hipGraphLaunch(graphExec: Any, stream: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuGraphLaunch(graphExec, stream))


def hipGraphDestroy(graph: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuGraphDestroy(graph))


def hipGraphExecDestroy(graphExec: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuGraphExecDestroy(graphExec))


def hipEventCreate() -> Result:
    """See hip-python."""
    return _as_hip(cu.cuEventCreate(0), _one, 1)


def hipEventRecord(event: Any, stream: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuEventRecord(event, stream))


def hipEventSynchronize(event: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuEventSynchronize(event))


def hipEventElapsedTime(start: Any, stop: Any) -> Result:
    """See hip-python; ms."""
    return _as_hip(cu.cuEventElapsedTime(start, stop), lambda ms: (float(ms),), 1)


def hipEventDestroy(event: Any) -> Result:
    """See hip-python."""
    return _as_hip(cu.cuEventDestroy(event))
