"""Nsight Compute around a real device child, on PoCL, by a program that stands in for it."""

import json
import shutil
import time
from pathlib import Path

import pytest

from testbed.deadlines import stretched
from tests.sandbox.kernels import CUDA_DEVICE, SCALE, built, plan, size, source
from tests.sandbox.ncu_stand_in import ncu
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.errors import Unavailable
from warpsmith.measure.ncu import COUNTERS
from warpsmith.sandbox import ChildOpener, CompilePool
from warpsmith.sandbox.hosts import ncu_host
from warpsmith.sandbox.hosts.ncu_host import NsightCompute, profiler_for

N = 1000
Counters = dict[str, float]


def counted(program: Path | None, pool: CompilePool, info: DeviceInfo, timeout_s: float = 20) -> Counters:
    """The counters of a kernel by this program."""
    compiled = built(pool, info, source(Backend.OPENCL, SCALE))
    profiler = NsightCompute(ChildOpener(info, timeout_s), program)
    return dict(profiler.counters(compiled, plan(N), size(N)))


def test_counters_come_back_from_around_the_child(
    tmp_path: Path, pool: CompilePool, opencl_info: DeviceInfo
) -> None:
    found = counted(ncu(tmp_path, "counts"), pool, opencl_info)
    assert found == {
        "dram_bytes": 1179648.0,
        "dram_percent": 85.27,
        "l2_hit_percent": 33.06,
        "sm_percent": 21.5,
    }
    (call,) = (tmp_path / "calls").read_text().splitlines()
    flags, taken = json.loads(call)
    log = Path(taken.pop("--log-file"))
    assert not log.parent.exists(), "what it wrote is left behind"
    assert flags == ["--csv"]
    assert taken == {
        "--page": "raw",
        "--print-units": "base",
        "--metrics": ",".join(COUNTERS),
        "--clock-control": "none",
        "--target-processes": "all",
        "--kernel-name-base": "mangled",
        "--kernel-name": "f",
        "--launch-count": "1",
    }


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("refused", "^ncu: ERR_NVGPUCTRPERM - The user does not have permission"),
        ("ends", "^ncu: Cuda driver is not compatible with Nsight Compute.$"),
    ],
)
def test_a_profiler_that_may_not_or_cannot_says_why(
    mode: str, words: str, tmp_path: Path, pool: CompilePool, opencl_info: DeviceInfo
) -> None:
    with pytest.raises(Unavailable, match=words):
        counted(ncu(tmp_path, mode), pool, opencl_info)


def test_a_profiler_that_hangs_is_given_up(
    tmp_path: Path, pool: CompilePool, opencl_info: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpsmith.sandbox.hosts.device_host.OPEN_TIMEOUT_S", 0.5)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"^ncu: timeout"):
        counted(ncu(tmp_path, "hangs"), pool, opencl_info)
    assert time.monotonic() - began < stretched(20)


def test_a_program_that_cannot_be_started_is_no_crash(
    tmp_path: Path, pool: CompilePool, opencl_info: DeviceInfo
) -> None:
    with pytest.raises(Unavailable, match="gone is not a program that this worker may run"):
        counted(tmp_path / "gone", pool, opencl_info)


def test_where_it_is_not_installed_it_says_so(
    monkeypatch: pytest.MonkeyPatch, pool: CompilePool, opencl_info: DeviceInfo
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(ncu_host, "WELL_KNOWN", ())
    assert profiler_for(opencl_info, ChildOpener(opencl_info)) is None
    made = profiler_for(CUDA_DEVICE, ChildOpener(CUDA_DEVICE))
    assert made is not None
    with pytest.raises(Unavailable, match="ncu is not installed on this worker"):
        counted(made.program, pool, opencl_info)
