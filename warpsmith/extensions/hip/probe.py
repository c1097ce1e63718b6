"""The AMD devices of a machine, as hip-python reports them. Not run on AMD hardware."""

from typing import Any

from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.calls import HipError, load_hip, text_of, values

_INFINITY_CACHE_BYTES = {"gfx942": 256 << 20, "gfx950": 256 << 20}
"""The last-level cache, by AMD's data sheets of MI300 and MI350. The runtime reports the level before it."""
_NO_DEVICE = "no AMD device; the driver amdgpu must be loaded, and /dev/kfd and /dev/dri open to this user"


def probe_devices() -> list[DeviceInfo]:
    """The devices; see `BackendModule.probe`."""
    hip, count = runtime()
    return [device_info(hip, index) for index in range(count)]


def device_info(hip: Any, index: int) -> DeviceInfo:
    """A device as HIP describes it.

    Raises:
        Unavailable: the runtime does not describe it.
    """
    try:
        (properties,) = values(hip.hipGetDeviceProperties(index))
        (version,) = values(hip.hipRuntimeGetVersion())
        limits = _limits(hip, index)
    except HipError as exc:
        raise Unavailable(f"hip: device {index} does not describe itself ({exc})") from exc
    # With its features: gfx942:sramecc+:xnack-. A code object without features fits each of their states.
    architecture = text_of(properties.gcnArchName).split(":")[0]
    cache_bytes = _INFINITY_CACHE_BYTES.get(architecture, 0)
    uuid = bytes(properties.uuid.bytes)
    return DeviceInfo(
        backend=Backend.HIP,
        index=index,
        uid=f"GPU-{uuid.hex()}" if any(uuid) else f"hip-{index}",
        name=text_of(properties.name) or architecture,
        driver=f"{version // 10_000_000}.{version // 100_000 % 100}.{version % 100_000}",
        architecture=architecture,
        limits=limits.model_copy(update={"l2_bytes": max(limits.l2_bytes, cache_bytes)}),
    )


def runtime() -> tuple[Any, int]:
    """The started runtime, and how many devices it has, which are more than none.

    Raises:
        Unavailable: something is missing; the message says what.
    """
    hip = load_hip()
    try:
        (count,) = values(hip.hipGetDeviceCount())
    except RuntimeError as exc:
        # hip-python loads the runtime at its first call.
        raise Unavailable(f"hip: ROCm's runtime (libamdhip64) is missing ({exc})") from exc
    except HipError as exc:
        raise Unavailable(f"hip: {_NO_DEVICE} ({exc})") from exc
    if not count:
        raise Unavailable(f"hip: {_NO_DEVICE}")
    return hip, int(count)


def _limits(hip: Any, index: int) -> DeviceLimits:
    kinds = hip.hipDeviceAttribute_t

    def ask(kind: Any) -> int:
        (found,) = values(hip.hipDeviceGetAttribute(kind, index))
        return int(found)

    (total_bytes,) = values(hip.hipDeviceTotalMem(index))
    # hip-python's documentation says of these that HIP may report 0; the model's defaults are right then.
    told = {
        "max_threads_per_multiprocessor": ask(kinds.hipDeviceAttributeMaxThreadsPerMultiProcessor),
        "registers_per_block": ask(kinds.hipDeviceAttributeMaxRegistersPerBlock),
        "l2_bytes": ask(kinds.hipDeviceAttributeL2CacheSize),
    }
    return DeviceLimits(
        max_threads_per_block=ask(kinds.hipDeviceAttributeMaxThreadsPerBlock),
        max_block_x=ask(kinds.hipDeviceAttributeMaxBlockDimX),
        max_block_y=ask(kinds.hipDeviceAttributeMaxBlockDimY),
        max_block_z=ask(kinds.hipDeviceAttributeMaxBlockDimZ),
        max_grid_x=ask(kinds.hipDeviceAttributeMaxGridDimX),
        max_grid_y=ask(kinds.hipDeviceAttributeMaxGridDimY),
        max_grid_z=ask(kinds.hipDeviceAttributeMaxGridDimZ),
        max_shared_per_block=ask(kinds.hipDeviceAttributeMaxSharedMemoryPerBlock),
        multiprocessors=ask(kinds.hipDeviceAttributeMultiprocessorCount),
        warp_size=ask(kinds.hipDeviceAttributeWarpSize),
        total_memory_bytes=int(total_bytes),
        **{name: value for name, value in told.items() if value > 0},
    )
