"""Stand-ins for devices that this machine has not, with the limits that compilation and constraints need."""

from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits, is_amd

_GRID = {"max_grid_x": 2**31 - 1, "max_grid_y": 65535, "max_grid_z": 65535}
_AMD_BLOCK = {"max_threads_per_block": 1024, "max_block_x": 1024, "max_block_y": 1024, "max_block_z": 1024}
_MI300X = DeviceLimits(
    **_AMD_BLOCK,
    **_GRID,
    max_shared_per_block=64 << 10,
    multiprocessors=304,
    warp_size=64,
    registers_per_block=512 * 64 * 4,
    l2_bytes=256 << 20,
    total_memory_bytes=192 << 30,
)
"""The MI300X of the table in https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html: 304 compute units,
64 lanes a wave, 64 KiB of LDS, 512 KiB of vector registers a compute unit, 192 GiB of memory, and before it
the Infinity Cache (L3) of 256 MiB behind 4 MiB of L2 a die."""


def absent_device(backend: Backend, arch: str) -> DeviceInfo | None:
    """The stand-in to compile for.

    Args:
        arch: `sm_90` for CUDA, `gfx942` for AMD.

    Returns:
        None if kernels of that back end are not compiled for that architecture.
    """
    device = any_amd_device(arch) if is_amd(arch) else any_cuda_device(arch)
    return device if device.backend in backend.runs_on else None


def any_cuda_device(arch: str) -> DeviceInfo:
    """A stand-in for an absent device, with the limits that every CUDA device has at least."""
    limits = DeviceLimits(
        max_threads_per_block=1024,
        max_block_x=1024,
        max_block_y=1024,
        max_block_z=64,
        **_GRID,
        max_shared_per_block=48 << 10,
        multiprocessors=1,
        warp_size=32,
    )
    return DeviceInfo(
        backend=Backend.CUDA, index=0, uid=arch, name=arch, driver="", architecture=arch, limits=limits
    )


def any_amd_device(arch: str) -> DeviceInfo:
    """A stand-in for an absent device of AMD: of gfx942 the MI300X, of others what all of them have at least.

    Waves have 64 lanes up to gfx9 and 32 in what is compiled for later ones (User Guide for AMDGPU Backend
    of LLVM, table of processors).
    """
    limits = _MI300X
    if arch != "gfx942":
        wave = 64 if arch[3:4] == "9" and len(arch) == len("gfx942") else 32
        limits = DeviceLimits(
            **_AMD_BLOCK, **_GRID, max_shared_per_block=64 << 10, multiprocessors=1, warp_size=wave
        )
    return DeviceInfo(
        backend=Backend.HIP, index=0, uid=arch, name=arch, driver="", architecture=arch, limits=limits
    )
