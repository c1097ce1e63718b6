"""A stand-in for CuPy where there is no device: its arrays are NumPy's. `tests/gpu` has the real one."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name in ("errstate", "vectorize"):
            raise AttributeError(name)
        return getattr(np, name)


def stand_in() -> tuple[ModuleType, list[str]]:
    """The module, and what was asked of its device and memory, in order."""
    asked: list[str] = []
    module = _Module("cupy")
    device = SimpleNamespace(use=lambda: asked.append("use"))
    pool = SimpleNamespace(free_all_blocks=lambda: asked.append("free"))
    members = {
        "cuda": SimpleNamespace(Device=lambda index: device),
        "get_default_memory_pool": lambda: pool,
        "asnumpy": np.asarray,
        "linalg": np.linalg,
    }
    for name, member in members.items():
        setattr(module, name, member)
    sys.modules["cupy.linalg"] = np.linalg
    return module, asked
