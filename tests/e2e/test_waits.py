"""What `warpsmith tune` waits for, and what it does not wait for."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.deadlines import stretched
from tests.e2e.test_job import wide_job
from tests.e2e.tuning import Tuning
from warpsmith.errors import Unavailable

pytestmark = pytest.mark.slow

HELD = re.compile(r"waits: the device is held by (another )?process")


def _without_gpu() -> bool:
    from warpsmith.backends.cuda import backend as cuda

    try:
        return not cuda.probe()
    except Unavailable:
        return True


def _cuda_job() -> dict[str, Any]:
    job = wide_job(trials=10)
    source = 'extern "C" __global__ void scale(const float* x, float* y, int n) { y[0] = 2.0f * x[0]; }'
    job["kernel"] |= {"backend": "cuda", "source": source}
    return job


@pytest.mark.skipif(not _without_gpu(), reason="this machine has a GPU that CUDA can use")
def test_a_cuda_job_on_a_machine_without_a_gpu_fails_at_once_and_says_what_is_missing(tmp_path: Path) -> None:
    made = Tuning(tmp_path, _cuda_job())
    try:
        made.wait_until(lambda said: "job " in said)
        began = time.monotonic()
        assert made.process.wait(stretched(60)) == 1
        assert time.monotonic() - began < stretched(45), "most of it is the worker's start, on a busy machine"
    finally:
        made.close()
    line = next(line for line in made.said.splitlines() if line.startswith("failed:"))
    _, found, words = line.partition("this machine has nothing for back end cuda: ")
    assert found and re.search(r"NVIDIA driver|PyCUDA|warpsmith\[pycuda\]|device", words), line


def _fell_while_waiting(said: str) -> list[tuple[int, int]]:
    """Seconds left before and after waits, where they fell by more than a wait may."""
    fell: list[tuple[int, int]] = []
    before: int | None = None
    for line in said.splitlines():
        left = re.search(r"(\d+) s left", line)
        if before is not None and left is not None and int(left[1]) < before - 3:
            fell.append((before, int(left[1])))
        before = int(left[1]) if left is not None and "waits:" in line else None
    return fell


def test_of_two_tunes_at_once_neither_pays_for_the_other(tmp_path: Path) -> None:
    job = wide_job(trials=10) | {"budget": {"trials": 10, "seconds": stretched(40)}}
    first, second = Tuning(tmp_path / "first", job), Tuning(tmp_path / "second", job | {"seed": 2})
    try:
        for made in (first, second):
            assert made.process.wait(stretched(280)) == 0, made.said + made.log()
    finally:
        first.close()
        second.close()
    assert HELD.search(first.said + second.said), first.said + second.said
    for made in (first, second):
        assert _fell_while_waiting(made.said) == [], made.said
        trials = re.findall(r"(\d+) tried", made.said)
        assert trials and int(trials[-1]) > 0, made.said
