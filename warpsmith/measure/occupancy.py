"""Occupancy of a kernel on a multiprocessor of NVIDIA or a compute unit of AMD, from the compiler's report.

NVIDIA's numbers are from the table of compute capabilities in the CUDA C++ Programming Guide. Its driver has
a function for this, but compile facts are computed where no device is present. AMD's are those that LLVM
computes with (`AMDGPUBaseInfo.cpp`): 8 waves and 512 vector registers a lane in each of four SIMDs.
"""

import re
from dataclasses import dataclass

SHARED_RESERVED = 1024
"""Bytes of each block's shared memory that the system reserves from compute capability 8.0 on."""


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor or compute unit."""

    warps: int
    blocks: int
    """Most blocks; AMD's limit is one of barriers and does not hold for blocks of one wave."""
    shared_bytes: int
    shared_reserved: int = SHARED_RESERVED
    """Bytes that each block with shared memory takes besides."""
    shared_unit: int = 1
    """Granularity in bytes in which shared memory is given to a block."""
    warp: int = 32
    """Threads of a warp or wave."""
    parts: int = 1
    """Register files, each for warps of its own."""
    registers: int = 65_536
    """Registers of all threads in one register file."""
    register_unit: int = 256
    """Granularity in which registers are given to a warp."""
    needs_barrier: bool = False
    """True: `blocks` holds only for blocks of several warps."""


_CDNA = Multiprocessor(
    warps=32,
    blocks=16,
    shared_bytes=64 << 10,
    shared_reserved=0,
    shared_unit=512,
    warp=64,
    parts=4,
    registers=512 * 64,
    register_unit=8 * 64,
    needs_barrier=True,
)
"""A compute unit whose vector registers and accumulators are of one file."""
AMD: dict[str, Multiprocessor] = {"gfx90a": _CDNA, "gfx942": _CDNA}
TABLE: dict[int, Multiprocessor] = {
    70: Multiprocessor(64, 32, 96 << 10, shared_reserved=0),
    75: Multiprocessor(32, 16, 64 << 10, shared_reserved=0),
    80: Multiprocessor(64, 32, 164 << 10),
    86: Multiprocessor(48, 16, 100 << 10),
    87: Multiprocessor(48, 16, 164 << 10),
    89: Multiprocessor(48, 24, 100 << 10),
    90: Multiprocessor(64, 32, 228 << 10),
    100: Multiprocessor(64, 32, 228 << 10),
    120: Multiprocessor(48, 24, 100 << 10),
}


def occupancy(architecture: str, threads: int, registers: int, shared_bytes: int) -> float | None:
    """Resident warps divided by the most that fit; None for an architecture that is in neither table.

    Args:
        architecture: such as `sm_90` or `gfx942`.
        threads: threads of a block.
        registers: registers of a thread.
        shared_bytes: shared memory of a block, static and dynamic, in bytes.
    """
    match = re.fullmatch(r"sm_(\d+)[af]?", architecture)
    held = TABLE.get(int(match[1])) if match else AMD.get(architecture)
    if held is None or threads < 1:
        return None
    warps = -(-threads // held.warp)
    blocks = held.warps // warps
    if warps > 1 or not held.needs_barrier:
        blocks = min(blocks, held.blocks)
    if registers > 0:
        of_warp = -(-registers * held.warp // held.register_unit) * held.register_unit
        blocks = min(blocks, held.parts * (held.registers // of_warp) // warps)
    if shared_bytes > 0:
        taken = -(-shared_bytes // held.shared_unit) * held.shared_unit + held.shared_reserved
        blocks = min(blocks, held.shared_bytes // taken)
    return blocks * warps / held.warps
