"""Occupancy of a kernel on an NVIDIA multiprocessor, from the compiler's report.

The numbers are from the table of compute capabilities in NVIDIA's CUDA C++ Programming Guide. The driver has
a function for this, but compile facts are computed where no device is present.
"""

import re
from dataclasses import dataclass

WARP = 32
REGISTERS = 65_536
"""Registers of a multiprocessor, on every architecture below."""
REGISTER_UNIT = 256
"""Granularity in which registers are given to a warp."""
SHARED_RESERVED = 1024
"""Bytes of each block's shared memory that the system reserves from compute capability 8.0 on."""


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor."""

    warps: int
    blocks: int
    shared_bytes: int


TABLE: dict[int, Multiprocessor] = {
    70: Multiprocessor(64, 32, 96 << 10),
    75: Multiprocessor(32, 16, 64 << 10),
    80: Multiprocessor(64, 32, 164 << 10),
    86: Multiprocessor(48, 16, 100 << 10),
    87: Multiprocessor(48, 16, 164 << 10),
    89: Multiprocessor(48, 24, 100 << 10),
    90: Multiprocessor(64, 32, 228 << 10),
    100: Multiprocessor(64, 32, 228 << 10),
    120: Multiprocessor(48, 24, 100 << 10),
}


def occupancy(architecture: str, threads: int, registers: int, shared_bytes: int) -> float | None:
    """Resident warps divided by the most that fit; None for an architecture that is not in the table.

    Args:
        architecture: such as `sm_90`.
        threads: threads of a block.
        registers: registers of a thread.
        shared_bytes: shared memory of a block, static and dynamic, in bytes.
    """
    match = re.fullmatch(r"sm_(\d+)[af]?", architecture)
    held = TABLE.get(int(match.group(1))) if match else None
    if held is None or threads < 1:
        return None
    warps = -(-threads // WARP)
    blocks = min(held.blocks, held.warps // warps)
    if registers > 0:
        of_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        blocks = min(blocks, REGISTERS // of_warp // warps)
    reserved = SHARED_RESERVED if int(match.group(1)) >= 80 else 0  # type: ignore[union-attr]
    if shared_bytes > 0:
        blocks = min(blocks, held.shared_bytes // (shared_bytes + reserved))
    return blocks * warps / held.warps
