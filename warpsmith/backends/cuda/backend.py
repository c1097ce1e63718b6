"""CUDA: NVRTC or nvcc to a cubin, PyCUDA to run it, graph replay to time it. Inside children only.

PyCUDA and the driver are optional at import: `probe` says what is missing.
"""

from typing import Any

from warpsmith import extras
from warpsmith.backends.base import CompileRequest, Device
from warpsmith.backends.cuda.compile import compile_cuda, import_compiler
from warpsmith.backends.cuda.device import CudaDevice
from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import Unavailable

__all__ = ["compile_source", "import_compiler", "import_device", "open_device", "probe"]


def import_device() -> None:
    """Import what `open_device` needs, before the child gives up the right to read files."""
    _driver()


def probe() -> list[DeviceInfo]:
    """See `BackendModule.probe`."""
    driver = _driver()
    version = driver.get_driver_version()
    name = f"{version // 1000}.{version % 1000 // 10}"
    devices = [_info(driver, index, _nvml_driver() or name) for index in range(driver.Device.count())]
    if not devices:
        raise Unavailable("cuda: a driver, but no device")
    return devices


def compile_source(request: CompileRequest) -> Compiled | Rejected:
    """See `BackendModule.compile_source`."""
    return compile_cuda(request)


def open_device(index: int) -> Device:
    """See `BackendModule.open_device`."""
    driver = _driver()
    version = driver.get_driver_version()
    return CudaDevice(_info(driver, index, f"{version // 1000}.{version % 1000 // 10}"))


def _driver() -> Any:
    try:
        from pycuda import driver
    except ImportError as exc:
        words = "the NVIDIA driver is missing" if "libcuda" in str(exc) else extras.advice("pycuda")
        raise Unavailable(f"cuda: {words} ({exc})") from exc
    try:
        from cuda.bindings import driver as bindings  # noqa: F401  graph replay needs it
    except ImportError as exc:
        raise Unavailable(f"cuda: {extras.advice('cuda')} ({exc})") from exc
    try:
        driver.init()
    except driver.Error as exc:
        raise Unavailable(f"cuda: the driver does not start ({exc})") from exc
    return driver


def _nvml_driver() -> str | None:
    """The driver version (580.159.04). NVML reports it; the CUDA driver API does not."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        try:
            return str(pynvml.nvmlSystemGetDriverVersion())
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None


def _info(driver: Any, index: int, driver_version: str) -> DeviceInfo:
    device = driver.Device(index)
    ask = driver.device_attribute
    get = device.get_attribute
    major, minor = device.compute_capability()
    return DeviceInfo(
        backend=Backend.CUDA,
        index=index,
        uid=_uuid(index) or f"cuda-{index}",
        name=device.name(),
        driver=driver_version,
        architecture=f"sm_{major}{minor}",
        limits=DeviceLimits(
            max_threads_per_block=get(ask.MAX_THREADS_PER_BLOCK),
            max_block_x=get(ask.MAX_BLOCK_DIM_X),
            max_block_y=get(ask.MAX_BLOCK_DIM_Y),
            max_block_z=get(ask.MAX_BLOCK_DIM_Z),
            max_grid_x=get(ask.MAX_GRID_DIM_X),
            max_grid_y=get(ask.MAX_GRID_DIM_Y),
            max_grid_z=get(ask.MAX_GRID_DIM_Z),
            max_shared_per_block=get(ask.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            multiprocessors=get(ask.MULTIPROCESSOR_COUNT),
            warp_size=get(ask.WARP_SIZE),
            max_threads_per_multiprocessor=get(ask.MAX_THREADS_PER_MULTIPROCESSOR),
            registers_per_block=get(ask.MAX_REGISTERS_PER_BLOCK),
            l2_bytes=get(ask.L2_CACHE_SIZE),
            total_memory_bytes=device.total_memory(),
        ),
    )


def _uuid(index: int) -> str | None:
    """The GPU's UUID through cuda-python; PyCUDA does not offer it."""
    from cuda.bindings import driver as bindings

    status, device = bindings.cuDeviceGet(index)
    if status != bindings.CUresult.CUDA_SUCCESS:
        return None
    status, uuid = bindings.cuDeviceGetUuid(device)
    if status != bindings.CUresult.CUDA_SUCCESS:
        return None
    return f"GPU-{bytes(uuid.bytes).hex()}"
