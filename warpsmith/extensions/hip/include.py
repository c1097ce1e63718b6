"""The headers of ours that stand in for HIP's own."""

from pathlib import Path

HEADERS = Path(__file__).resolve().parent / "headers"
"""For NVIDIA's devices; where AMD's need others, they are in `amd` below and come before."""
RUNTIME = "hip/hip_runtime.h"
"""Every source sees it, as under hipRTC."""
