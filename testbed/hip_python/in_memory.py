"""A stand-in for `hip.hip` of hip-python without a device: memory of this process, kernels in Python.

A launch gets the bytes of its parameters. Time is what the kernels say; nothing else takes any.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any

from testbed.hip_python import interface
from testbed.hip_python.interface import hipError_t

Kernel = Callable[["InMemoryHip", bytes], None]
"""What a launch does, from the bytes of its parameters."""
Result = tuple[Any, ...]
_OK = (hipError_t.hipSuccess,)
MOST_THREADS = 1024


@dataclass
class Module:
    """What was loaded."""

    kernels: dict[str, Kernel]
    places: dict[str, tuple[int, int]]
    """Address and bytes of each variable."""


@dataclass
class InMemoryHip:
    """The module; every call is a method of its name."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    variables: dict[str, int] = field(default_factory=dict)
    """Bytes of the variables of whatever is loaded."""
    devices: int = 1
    architecture: str = "gfx942:sramecc+:xnack-"
    attributes: dict[interface.hipDeviceAttribute_t, int] = field(default_factory=dict)
    launch_us: float = 10.0
    fails: dict[str, hipError_t] = field(default_factory=dict)
    """Calls that fail, with their error."""
    calls: list[str] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    """What each launch was given, in the order in which they ran."""
    memory: dict[int, Any] = field(default_factory=dict)
    now_us: float = 0.0
    _capture: list[Callable[[], None]] | None = None
    _numbers: Any = field(default_factory=lambda: count(1))

    HIP_LAUNCH_PARAM_BUFFER_POINTER = interface.HIP_LAUNCH_PARAM_BUFFER_POINTER
    HIP_LAUNCH_PARAM_BUFFER_SIZE = interface.HIP_LAUNCH_PARAM_BUFFER_SIZE
    HIP_LAUNCH_PARAM_END = interface.HIP_LAUNCH_PARAM_END
    hipStreamDefault = interface.hipStreamDefault
    hipError_t = interface.hipError_t
    hipDeviceAttribute_t = interface.hipDeviceAttribute_t
    hipStreamCaptureMode = interface.hipStreamCaptureMode

    def __getattribute__(self, name: str) -> Any:
        """Calls that are to fail do nothing else."""
        found = object.__getattribute__(self, name)
        if name not in interface.RUNTIME:
            return found
        self.calls.append(name)
        if name not in self.fails:
            return found
        error, values = self.fails[name], interface.RUNTIME[name].values
        return lambda *arguments: (error, *(None for _ in range(values)))

    def hipGetDeviceCount(self) -> Result:
        """See hip-python."""
        return hipError_t.hipSuccess if self.devices else hipError_t.hipErrorNoDevice, self.devices

    def hipSetDevice(self, deviceId: int) -> Result:
        """See hip-python."""
        return _OK if 0 <= deviceId < self.devices else (hipError_t.hipErrorInvalidDevice,)

    def hipGetDeviceProperties(self, deviceId: int) -> Result:
        """See hip-python."""
        uuid = SimpleNamespace(bytes=f"{deviceId:016x}".encode())
        found = SimpleNamespace(name="AMD Instinct MI300X", gcnArchName=self.architecture, uuid=uuid)
        return hipError_t.hipSuccess, found

    def hipDeviceGetAttribute(self, attr: interface.hipDeviceAttribute_t, deviceId: int) -> Result:
        """See hip-python."""
        assert isinstance(attr, interface.hipDeviceAttribute_t), "hip-python refuses a plain number"
        return hipError_t.hipSuccess, self.attributes.get(attr, 1024)

    def hipDeviceTotalMem(self, device: int) -> Result:
        """See hip-python."""
        return hipError_t.hipSuccess, 192 << 30

    def hipRuntimeGetVersion(self) -> Result:
        """See hip-python."""
        return hipError_t.hipSuccess, 60443483

    def hipMalloc(self, size: int) -> Result:
        """See hip-python."""
        made = ctypes.create_string_buffer(size)
        address = ctypes.addressof(made)
        self.memory[address] = made
        return hipError_t.hipSuccess, address

    def hipFree(self, ptr: int) -> Result:
        """See hip-python."""
        known = self.memory.pop(ptr, None) is not None
        return _OK if known else (hipError_t.hipErrorInvalidValue,)

    def _copy(self, to: int, source: int, size: int, device: Sequence[int]) -> Result:
        for address in device:
            if not any(a <= address and address + size <= a + len(m) for a, m in self.memory.items()):
                return (hipError_t.hipErrorInvalidValue,)
        ctypes.memmove(to, source, size)
        return _OK

    def hipMemcpyHtoD(self, dst: int, src: int, sizeBytes: int) -> Result:
        """See hip-python."""
        return self._copy(dst, src, sizeBytes, [dst])

    def hipMemcpyDtoH(self, dst: int, src: int, sizeBytes: int) -> Result:
        """See hip-python."""
        return self._copy(dst, src, sizeBytes, [src])

    def hipMemcpyDtoD(self, dst: int, src: int, sizeBytes: int) -> Result:
        """See hip-python."""
        return self._copy(dst, src, sizeBytes, [dst, src])

    def _set(self, to: int, value: bytes, times: int) -> Result:
        filled = ctypes.create_string_buffer(value * times, len(value) * times)
        return self._copy(to, ctypes.addressof(filled), len(value) * times, [to])

    def hipMemsetD8(self, dest: int, value: int, count: int) -> Result:
        """See hip-python."""
        return self._set(dest, value.to_bytes(1, "little"), count)

    def hipMemsetD16(self, dest: int, value: int, count: int) -> Result:
        """See hip-python."""
        return self._set(dest, value.to_bytes(2, "little"), count)

    def hipMemsetD32(self, dest: int, value: int, count: int) -> Result:
        """See hip-python; the value is a signed int."""
        return self._set(dest, value.to_bytes(4, "little", signed=True), count)

    def hipModuleLoadData(self, image: int) -> Result:
        """See hip-python."""
        if ctypes.string_at(image, 4) != b"\x7fELF":
            return hipError_t.hipErrorInvalidImage, None
        places = {name: (self.hipMalloc(size)[1], size) for name, size in self.variables.items()}
        return hipError_t.hipSuccess, Module(dict(self.kernels), places)

    def hipModuleUnload(self, module: Module) -> Result:
        """See hip-python."""
        for address, _ in module.places.values():
            self.memory.pop(address)
        return _OK

    def hipModuleGetFunction(self, module: Module, kname: bytes) -> Result:
        """See hip-python."""
        found = module.kernels.get(kname.decode())
        return (hipError_t.hipSuccess, found) if found else (hipError_t.hipErrorNotFound, None)

    def hipModuleGetGlobal(self, hmod: Module, name: bytes) -> Result:
        """See hip-python."""
        found = hmod.places.get(name.decode())
        return (hipError_t.hipSuccess, *found) if found else (hipError_t.hipErrorNotFound, None, 0)

    def hipModuleLaunchKernel(  # noqa: PLR0913  hip-python's parameters
        self,
        f: Kernel,
        gridDimX: int,
        gridDimY: int,
        gridDimZ: int,
        blockDimX: int,
        blockDimY: int,
        blockDimZ: int,
        sharedMemBytes: int,
        stream: object,
        kernelParams: int | None,
        extra: int | None,
    ) -> Result:
        """See hip-python."""
        assert kernelParams is None
        assert extra is not None
        pointer, buffer, size, length, end = (ctypes.c_void_p * 5).from_address(extra)
        assert (pointer, size, end) == (1, 2, 3)
        assert buffer is not None and length is not None
        data = ctypes.string_at(buffer, ctypes.c_size_t.from_address(length).value)
        given = {
            "grid": (gridDimX, gridDimY, gridDimZ),
            "block": (blockDimX, blockDimY, blockDimZ),
            "shared": sharedMemBytes,
            "data": data,
        }
        return self._launch(f, given)

    def hipModuleLaunchCooperativeKernel(  # noqa: PLR0913  hip-python's parameters
        self,
        f: Kernel,
        gridDimX: int,
        gridDimY: int,
        gridDimZ: int,
        blockDimX: int,
        blockDimY: int,
        blockDimZ: int,
        sharedMemBytes: int,
        stream: object,
        kernelParams: int,
    ) -> Result:
        """See hip-python; of the parameters, the first eight bytes of the first are looked at."""
        first = (ctypes.c_void_p * 1).from_address(kernelParams)[0]
        assert first is not None
        given = {
            "grid": (gridDimX, gridDimY, gridDimZ),
            "block": (blockDimX, blockDimY, blockDimZ),
            "shared": sharedMemBytes,
            "cooperative": True,
            "data": ctypes.string_at(first, 8),
        }
        return self._launch(f, given)

    def _launch(self, kernel: Kernel, given: dict[str, Any]) -> Result:
        x, y, z = given["block"]
        if x * y * z > MOST_THREADS:
            return (hipError_t.hipErrorInvalidConfiguration,)

        def run() -> None:
            self.launches.append(given)
            kernel(self, given["data"])
            self.now_us += self.launch_us

        if self._capture is None:
            run()
        else:
            self._capture.append(run)
        return _OK

    def hipStreamCreateWithFlags(self, flags: int) -> Result:
        """See hip-python."""
        return hipError_t.hipSuccess, next(self._numbers)

    def hipStreamDestroy(self, stream: object) -> Result:
        """See hip-python."""
        return _OK

    def hipStreamSynchronize(self, stream: object) -> Result:
        """See hip-python."""
        return _OK

    def hipStreamBeginCapture(self, stream: object, mode: interface.hipStreamCaptureMode) -> Result:
        """See hip-python."""
        self._capture = []
        return _OK

    def hipStreamEndCapture(self, stream: object) -> Result:
        """See hip-python."""
        made, self._capture = self._capture, None
        return hipError_t.hipSuccess, made

    def hipGraphInstantiateWithFlags(self, graph: object, flags: int) -> Result:
        """See hip-python."""
        return hipError_t.hipSuccess, graph

    def hipGraphUpload(self, graphExec: object, stream: object) -> Result:
        """See hip-python."""
        return _OK

    def hipGraphLaunch(self, graphExec: Sequence[Callable[[], None]], stream: object) -> Result:
        """See hip-python."""
        for run in graphExec:
            run()
        return _OK

    def hipGraphDestroy(self, graph: object) -> Result:
        """See hip-python."""
        return _OK

    def hipGraphExecDestroy(self, graphExec: object) -> Result:
        """See hip-python."""
        return _OK

    def hipEventCreate(self) -> Result:
        """See hip-python."""
        return hipError_t.hipSuccess, SimpleNamespace(at_us=0.0)

    def hipEventRecord(self, event: Any, stream: object) -> Result:
        """See hip-python."""
        event.at_us = self.now_us
        return _OK

    def hipEventSynchronize(self, event: object) -> Result:
        """See hip-python."""
        return _OK

    def hipEventElapsedTime(self, start: Any, stop: Any) -> Result:
        """See hip-python; ms."""
        return hipError_t.hipSuccess, (stop.at_us - start.at_us) / 1000.0

    def hipEventDestroy(self, event: object) -> Result:
        """See hip-python."""
        return _OK
