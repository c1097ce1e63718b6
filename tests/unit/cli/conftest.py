"""One compiler of a kind for the commands of this folder: most of their time is the start of its child."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from warpsmith.sandbox.hosts import compile_host

Key = tuple[int, float, tuple[tuple[str, Path], ...]]


class SharedPools:
    """Stands in for `CompilePool`: who closes one leaves it to the next who asks for the same."""

    def __init__(self) -> None:
        self._made: dict[Key, SharedPool] = {}

    def __call__(
        self, workers: int, timeout_s: float, include_dirs: Mapping[str, Path] | None = None
    ) -> "SharedPool":
        key = (workers, timeout_s, tuple(sorted((include_dirs or {}).items())))
        if key not in self._made:
            self._made[key] = SharedPool(workers, timeout_s, include_dirs)
        return self._made[key]

    def close(self) -> None:
        """End all children."""
        for pool in self._made.values():
            compile_host.CompilePool.close(pool)


class SharedPool(compile_host.CompilePool):
    """A pool that stays open."""

    def close(self) -> None:
        """Left to `SharedPools`."""


@pytest.fixture(scope="session")
def pools() -> Iterator[SharedPools]:
    """All pools of this folder, with their children."""
    made = SharedPools()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _shared_pools(pools: SharedPools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process get a pool that is open already."""
    monkeypatch.setattr(compile_host, "CompilePool", pools)
