"""Stand-ins for devices that a kernel is compiled for and that are not here."""

import re

from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits
from warpsmith.errors import InvalidInput

NOT_RUN = "not run on AMD hardware"
_AMD = re.compile(r"gfx(\d{1,2})[0-9a-f]{2}")
_WIDE_WAVEFRONTS = 10
"""Generation of AMD's architectures from which a wavefront has 32 lanes."""


def absent_device(arch: str) -> DeviceInfo:
    """A device of an architecture, such as `sm_90` or `gfx942`, with the limits that all of them have.

    Raises:
        InvalidInput: there is no such architecture.
    """
    if _AMD.fullmatch(arch):
        return any_amd_device(arch)
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise InvalidInput("--arch", f"{arch!r} is no architecture such as sm_90 or gfx942")
    return any_cuda_device(arch)


def any_cuda_device(arch: str) -> DeviceInfo:
    """A stand-in for an absent device, with the limits that every CUDA device has at least."""
    return _device(
        Backend.CUDA,
        arch,
        DeviceLimits(
            max_threads_per_block=1024,
            max_block_x=1024,
            max_block_y=1024,
            max_block_z=64,
            max_grid_x=2**31 - 1,
            max_grid_y=65535,
            max_grid_z=65535,
            max_shared_per_block=48 << 10,
            multiprocessors=1,
            warp_size=32,
        ),
    )


def any_amd_device(arch: str) -> DeviceInfo:
    """A description of an AMD device, none of which was here.

    `gfx942` has the numbers of AMD's "CDNA 3 Instruction Set Architecture" and of its data sheet of the
    MI300X: 304 compute units of four SIMDs, each with 512 vector registers for every lane and room for 8
    wavefronts of 64; 64 KiB of local memory. Others get what all have since.
    """
    found = _AMD.fullmatch(arch)
    is_wide = found is not None and int(found[1]) < _WIDE_WAVEFRONTS
    return _device(
        Backend.HIP,
        arch,
        DeviceLimits(
            max_threads_per_block=1024,
            max_block_x=1024,
            max_block_y=1024,
            max_block_z=1024,
            max_grid_x=2**31 - 1,
            max_grid_y=65535,
            max_grid_z=65535,
            max_shared_per_block=64 << 10,
            multiprocessors=304 if arch == "gfx942" else 1,
            warp_size=64 if is_wide else 32,
            max_threads_per_multiprocessor=2048,
            registers_per_block=4 * 512 * 64,
        ),
    )


def _device(backend: Backend, arch: str, limits: DeviceLimits) -> DeviceInfo:
    return DeviceInfo(
        backend=backend, index=0, uid=arch, name=arch, driver="", architecture=arch, limits=limits
    )
