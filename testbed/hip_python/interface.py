"""The part of hip-python's interface that the back end uses: names, parameters, and what a call returns.

Recorded from the type stubs of hip-python 10.0.0.0.1.2. The stand-ins are held to it, and so is the back end.
"""

from enum import IntEnum
from typing import NamedTuple


class Call(NamedTuple):
    """A call; it returns a tuple of its error and of so many values."""

    parameters: str
    """Names, in order."""
    values: int = 0


_LAUNCH = "f gridDimX gridDimY gridDimZ blockDimX blockDimY blockDimZ sharedMemBytes stream kernelParams"

RUNTIME: dict[str, Call] = {
    "hipDeviceGetAttribute": Call("attr deviceId", 1),
    "hipDeviceTotalMem": Call("device", 1),
    "hipEventCreate": Call("", 1),
    "hipEventDestroy": Call("event"),
    "hipEventElapsedTime": Call("start stop", 1),
    "hipEventRecord": Call("event stream"),
    "hipEventSynchronize": Call("event"),
    "hipFree": Call("ptr"),
    "hipGetDeviceCount": Call("", 1),
    "hipGetDeviceProperties": Call("deviceId", 1),
    "hipGraphDestroy": Call("graph"),
    "hipGraphExecDestroy": Call("graphExec"),
    "hipGraphInstantiateWithFlags": Call("graph flags", 1),
    "hipGraphLaunch": Call("graphExec stream"),
    "hipGraphUpload": Call("graphExec stream"),
    "hipMalloc": Call("size", 1),
    "hipMemcpyDtoD": Call("dst src sizeBytes"),
    "hipMemcpyDtoH": Call("dst src sizeBytes"),
    "hipMemcpyHtoD": Call("dst src sizeBytes"),
    "hipMemsetD16": Call("dest value count"),
    "hipMemsetD32": Call("dest value count"),
    "hipMemsetD8": Call("dest value count"),
    "hipModuleGetFunction": Call("module kname", 1),
    "hipModuleGetGlobal": Call("hmod name", 2),
    "hipModuleLaunchCooperativeKernel": Call(
        "f gridDimX gridDimY gridDimZ blockDimX blockDimY blockDimZ sharedMemBytes stream kernelParams", 0
    ),
    "hipModuleLaunchKernel": Call(
        "f gridDimX gridDimY gridDimZ blockDimX blockDimY blockDimZ sharedMemBytes stream kernelParams extra",
        0,
    ),
    "hipModuleLoadData": Call("image", 1),
    "hipModuleUnload": Call("module"),
    "hipRuntimeGetVersion": Call("", 1),
    "hipSetDevice": Call("deviceId"),
    "hipStreamBeginCapture": Call("stream mode"),
    "hipStreamCreateWithFlags": Call("flags", 1),
    "hipStreamDestroy": Call("stream"),
    "hipStreamEndCapture": Call("stream", 1),
    "hipStreamSynchronize": Call("stream"),
}
"""Of `hip.hip`."""
COMPILER: dict[str, Call] = {
    "hiprtcAddNameExpression": Call("prog name_expression"),
    "hiprtcCompileProgram": Call("prog numOptions options"),
    "hiprtcCreateProgram": Call("src name numHeaders headers includeNames", 1),
    "hiprtcDestroyProgram": Call("prog"),
    "hiprtcGetCode": Call("prog code"),
    "hiprtcGetCodeSize": Call("prog", 1),
    "hiprtcGetLoweredName": Call("prog name_expression", 1),
    "hiprtcGetProgramLog": Call("prog log"),
    "hiprtcGetProgramLogSize": Call("prog", 1),
    "hiprtcVersion": Call("", 2),
}
"""Of `hip.hiprtc`."""
HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END = 1, 2, 3
hipStreamDefault = 0


class hipError_t(IntEnum):
    """Errors; those that CUDA's driver has as well have its numbers."""

    hipSuccess = 0
    hipErrorInvalidValue = 1
    hipErrorOutOfMemory = 2
    hipErrorNotInitialized = 3
    hipErrorDeinitialized = 4
    hipErrorInvalidConfiguration = 9
    hipErrorInvalidSymbol = 13
    hipErrorInvalidDeviceFunction = 98
    hipErrorNoDevice = 100
    hipErrorInvalidDevice = 101
    hipErrorInvalidImage = 200
    hipErrorInvalidContext = 201
    hipErrorNoBinaryForGpu = 209
    hipErrorECCNotCorrectable = 214
    hipErrorInvalidKernelFile = 218
    hipErrorInvalidSource = 300
    hipErrorFileNotFound = 301
    hipErrorSharedObjectSymbolNotFound = 302
    hipErrorSharedObjectInitFailed = 303
    hipErrorInvalidHandle = 400
    hipErrorIllegalState = 401
    hipErrorNotFound = 500
    hipErrorNotReady = 600
    hipErrorIllegalAddress = 700
    hipErrorLaunchOutOfResources = 701
    hipErrorLaunchTimeOut = 702
    hipErrorContextIsDestroyed = 709
    hipErrorAssert = 710
    hipErrorLaunchFailure = 719
    hipErrorCooperativeLaunchTooLarge = 720
    hipErrorNotSupported = 801
    hipErrorStreamCaptureUnsupported = 900
    hipErrorStreamCaptureInvalidated = 901
    hipErrorStreamCaptureImplicit = 906
    hipErrorUnknown = 999
    hipErrorInvalidClusterSize = 1054


class hipDeviceAttribute_t(IntEnum):
    """Attributes of a device."""

    hipDeviceAttributeL2CacheSize = 19
    hipDeviceAttributeMaxBlockDimX = 26
    hipDeviceAttributeMaxBlockDimY = 27
    hipDeviceAttributeMaxBlockDimZ = 28
    hipDeviceAttributeMaxGridDimX = 29
    hipDeviceAttributeMaxGridDimY = 30
    hipDeviceAttributeMaxGridDimZ = 31
    hipDeviceAttributeMaxRegistersPerBlock = 71
    hipDeviceAttributeMaxSharedMemoryPerBlock = 74
    hipDeviceAttributeMaxThreadsPerBlock = 56
    hipDeviceAttributeMaxThreadsPerMultiProcessor = 57
    hipDeviceAttributeMultiprocessorCount = 63
    hipDeviceAttributeWarpSize = 87


class hipStreamCaptureMode(IntEnum):
    """What a thread may do during a capture."""

    hipStreamCaptureModeGlobal = 0
    hipStreamCaptureModeThreadLocal = 1
    hipStreamCaptureModeRelaxed = 2
