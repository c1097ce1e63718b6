"""Number of threads of a warp, as far as a source may rely on it.

CUDA's has 32, and `warpSize` is that number. HIP's has 32 or 64, by the device, so there `warpSize` is no
number; threads that a HIP kernel takes by 32 are a part of a warp on some devices.
"""

import re

from warpsmith.domain.device import Backend

WARP = 32
"""Threads of a warp of CUDA, and the fewest of a warp of HIP."""


def widest_warp(backend: Backend) -> int:
    """The most threads that a warp may have."""
    return backend.language.widest_warp


def launches_by_warps(text: str, backend: Backend) -> bool:
    """True if a launch may count on warps of 32 for a kernel of this text."""
    return widest_warp(backend) == WARP or re.search(r"\bwarpSize\b", text) is None


def is_warp_width(text: str, backend: Backend) -> bool:
    """True if a text is the width of a warp, and that is 32 on every device."""
    return text == "warpSize" and widest_warp(backend) == WARP
