"""Whether a timing needs a launch before its samples: not if the same long one was just timed."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpsmith.backends.base import Repeats
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import LONG_LAUNCH_US, STEADY_LAUNCH_US, TimingPlan, WorkloadPlan
from warpsmith.sandbox.children.device_child import _Server
from warpsmith.sandbox.memory.rotation import rotation
from warpsmith.sandbox.transport.messages import case_to_json, size_to_json, timing_to_json

PLAN = WorkloadPlan("n", seed=1, arguments=())
SIZE = LaunchSize(grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0)


class Buffers:
    """One workload's, which does nothing."""

    plan, in_place = PLAN, False

    def rotation(self, cache: CacheState, apart: bool) -> Any:
        """Of four sets."""
        return rotation(4, apart)

    def scratch_of(self, size: LaunchSize) -> Any:
        """None to check."""
        return SimpleNamespace(poison=lambda: None, guard_violations=list)

    def symbols_of(self, program: Any) -> Any:
        """None to write."""
        return SimpleNamespace(write=lambda *_: None, changed=list)

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_words: []


class Device:
    """Says how long a launch takes, and remembers what it was told of it."""

    def __init__(self, launch_us: float) -> None:
        self.launch_us = launch_us
        self.known_us: list[float] = []

    def time(self, _program: Any, _sets: Any, _size: Any, repeats: Repeats, _watch: Any) -> Any:
        """One sample."""
        self.known_us.append(repeats.known_us)
        return [self.launch_us], 1

    def launch(self, *_: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    ("launch_us", "is_warm", "cache", "checked", "known"),
    [
        (LONG_LAUNCH_US, True, CacheState.COLD, False, True),
        (LONG_LAUNCH_US - 1, True, CacheState.COLD, False, False),
        (LONG_LAUNCH_US, False, CacheState.COLD, False, False),
        (LONG_LAUNCH_US, True, CacheState.HOT, False, False),
        (LONG_LAUNCH_US, True, CacheState.COLD, True, False),
        (STEADY_LAUNCH_US, False, CacheState.HOT, True, True),
    ],
)
def test_a_long_launch_is_known_where_nothing_else_slows_its_first_sample(
    launch_us: float, is_warm: bool, cache: CacheState, checked: bool, known: bool
) -> None:
    device = Device(launch_us)
    server = _Server(cast("Any", None), cast("Any", device), guarded=False)
    server._workloads[PLAN.key] = cast("Any", Buffers())
    server._programs[1] = cast("Any", SimpleNamespace(changed_globals=list))
    request = {
        "handle": 1,
        "case": case_to_json(PLAN.key),
        "size": size_to_json(SIZE),
        "plan": timing_to_json(TimingPlan(cache, samples=3, is_warm=is_warm)),
    }
    server._time(request, [])
    if checked:
        server._run(request | {"ranges": None, "poison": False, "repeat": False}, [])
    server._time(request, [])
    assert device.known_us == [0.0, launch_us if known else 0.0]
