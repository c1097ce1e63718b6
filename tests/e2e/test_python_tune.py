"""`warpsmith.tune` on a real device (PoCL): ten lines of Python, their interruption, and their going on."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsmith
from testbed.deadlines import HANGS_S, Deadline, stretched
from tests.e2e.tuning import ROOT, descendants, left_after
from warpsmith.domain.jobs.job import NumpyReference
from warpsmith.domain.state import JobState
from warpsmith.extensions.clients.python.embedded import end_kept
from warpsmith.http_models import JobStatus

pytestmark = pytest.mark.slow

STENCIL = ROOT / "examples" / "stencil" / "stencil.cl"
PROGRAM = """
import numpy as np
import warpsmith

SOURCE = '''
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = (2.0f + (PAD == 99)) * x[i];
}
'''
x = np.random.default_rng(0).normal(size=65536).astype(np.float32)
result = warpsmith.tune(
    SOURCE, [x, x, x.size], grid="ceil_div(n, BLOCK)", block="BLOCK", trials=TRIALS, seconds=600,
    parameters={"BLOCK": [64, 32, 128, 256], "PAD": list(range(64))}, data_dir="data",
    fields={"searcher": "random", "rewrite": {"enabled": False}},
    progress=lambda status: print(status.id, status.trials_done, status.state.value, flush=True),
)
print("ended", result.id, len(result.trials), flush=True)
"""


def diffused(u: Any, alpha: float) -> Any:
    """One step of the stencil in NumPy."""
    after = u.copy()
    neighbours = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
    after[1:-1, 1:-1] = u[1:-1, 1:-1] + alpha * (neighbours - 4.0 * u[1:-1, 1:-1])
    return after


def tuned(folder: Path, **others: Any) -> warpsmith.Result:
    """The result of a short tuning of the stencil, with its reference."""
    u = np.random.default_rng(0).normal(size=(120, 333)).astype(np.float32)
    arguments = {"u": u, "next": np.empty_like(u), "alpha": 0.2}
    return warpsmith.tune(
        STENCIL,
        arguments,
        {"height": 120, "width": 333},
        grid=["ceil_div(width, 16)", "ceil_div(height, 4)"],
        block=[16, 4],
        trials=6,
        seconds=600,
        data_dir=folder,
        **{"reference": diffused, **others},
    )


def test_an_array_and_a_function_of_numpy_are_enough(tmp_path: Path) -> None:
    seen: list[JobStatus] = []
    before = descendants(os.getpid())
    result = tuned(tmp_path / "data", progress=seen.append)
    assert result.state is JobState.DONE and result.trials
    assert isinstance(result.job.reference, NumpyReference)
    assert result.kernel_for(height=120, width=333).entry == "stencil"
    assert seen[-1].state is JobState.DONE and seen[-1].id == result.id
    kept = set(descendants(os.getpid())) - set(before)
    assert kept, "the service waits for the next call"
    end_kept()
    assert left_after(kept, 3) == []


def test_it_works_in_a_thread_and_says_why_a_job_failed(tmp_path: Path) -> None:
    """A notebook's kernel may run a cell in another thread than the main one; no signal is touched there."""
    ended: list[tuple[warpsmith.Result, str]] = []

    def wrong(u: Any) -> Any:
        return u + 1

    def call() -> None:
        with pytest.warns(UserWarning, match="the job has failed: ") as told:
            result = tuned(tmp_path / "data", reference=wrong, progress=False)
        ended.append((result, str(told[0].message)))

    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(HANGS_S)
    ((result, words),) = ended
    assert result.state is JobState.FAILED and "next" in words
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


class Program:
    """A Python program with one call, in a process of its own."""

    def __init__(self, folder: Path, trials: int) -> None:
        self._said = folder / "said"
        self._said.write_bytes(b"")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        with self._said.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(PROGRAM).replace("TRIALS", str(trials))],
                cwd=folder,
                env=kept | {"PYTHONPATH": str(ROOT)},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._said.read_text(errors="replace")

    def wait_until(self, words: str, seconds: float = 90) -> None:
        """Until it has printed what matches."""
        deadline = Deadline(seconds)
        while not re.search(words, self.said):
            assert self.process.poll() is None and not deadline.passed(), self.said
            time.sleep(0.05)

    def close(self) -> None:
        """SIGKILL to it; the kernel ends what it started."""
        self.process.kill()
        self.process.wait()


def test_ctrl_c_ends_everything_and_the_same_call_goes_on(tmp_path: Path) -> None:
    first = Program(tmp_path, trials=12)
    try:
        first.wait_until(r"(?m)^\S+ [1-9]\d* searching")
        family = descendants(first.process.pid)
        assert len(family) >= 4, "a service, a worker, pools and their children"
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(stretched(30)) != 0
        said = first.said
        assert said.rstrip().endswith("KeyboardInterrupt"), said
        assert left_after(family, 3) == []
    finally:
        first.close()
    job, done = re.findall(r"(?m)^(\S+) (\d+) searching", said)[-1]
    second = Program(tmp_path, trials=12)
    try:
        assert second.process.wait(stretched(150)) == 0, second.said
        counts = [int(n) for n in re.findall(rf"(?m)^{re.escape(job)} (\d+) ", second.said)]
        assert counts[0] >= int(done), "what was measured before the interruption counts"
        assert f"ended {job} 12" in second.said
    finally:
        second.close()


def test_a_program_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    program = Program(tmp_path, trials=12)
    try:
        program.wait_until("searching")
        family = descendants(program.process.pid)
    finally:
        program.close()
    assert left_after(family, 20) == []


def test_a_service_is_kept_between_calls_and_ends_with_the_program(tmp_path: Path) -> None:
    """A thread that ended, a fork and another folder change nothing; an error in a call ends the service."""
    program = """
import os, threading, time
from pathlib import Path
from warpsmith.extensions.clients.python.embedded import kept_service

def call():
    with kept_service(Path("data")) as client:
        client.health()
        return client.url

first = []
thread = threading.Thread(target=lambda: first.append(call()))
thread.start()
thread.join()
if not (child := os.fork()):
    import atexit
    atexit._run_exitfuncs()
    os._exit(0)
os.waitpid(child, 0)
began = time.monotonic()
assert [call()] == first and time.monotonic() - began < 1
with kept_service(Path("data")) as outer:
    assert call() not in first, "a call beside another has a service of its own"
    assert [outer.url] == first
try:
    with kept_service(Path("data")):
        raise ZeroDivisionError
except ZeroDivisionError:
    assert call() not in first
os.environ["WARPSMITH_LOG_LEVEL"] = "debug"
changed = call()
assert call() == changed
print("READY", flush=True)
time.sleep(1)
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    short = program.partition("first = []")[0] + "call()\nprint('READY', flush=True)\ntime.sleep(600)\n"
    for text, signum in ((program, None), (short, signal.SIGKILL)):
        process = subprocess.Popen(
            [sys.executable, "-c", text],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stdout.readline() == b"READY\n"
        family = descendants(process.pid)
        if signum is not None:
            process.send_signal(signum)
        assert process.wait(stretched(60)) == (0 if signum is None else -signum)
        process.stdout.close()
        assert left_after(family, 20) == []
