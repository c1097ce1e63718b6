"""A process that is asked to stop does so, whichever line of it the signal interrupts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from testbed.deadlines import stretched

ROOT = Path(__file__).resolve().parents[2]

AT_EVERY_LINE = """
import signal, sys
from worker.stop_request import StopRequest

def interrupted(at):
    "Whether a wait has so many lines, in whatever module; the signal comes at that one."
    stop, lines = StopRequest(), 0
    stop.stop_on_signals()
    def trace(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == at:
            signal.raise_signal(signal.SIGTERM)
        return trace
    sys.settrace(trace)
    stop.wait(0.01)
    sys.settrace(None)
    assert stop.wait(0.0) == (stop.signum is not None) == (lines >= at)
    return lines >= at

at = 1
while interrupted(at):
    at += 1
print("lines", at - 1)
"""
WAITING = """
from worker.stop_request import StopRequest

stop = StopRequest()
stop.stop_on_signals()
print("waits", flush=True)
assert stop.wait(3600.0)
print("woken", flush=True)
input()
assert stop.wait(3600.0)
print(stop.signum.name)
"""


def python(program: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def test_a_signal_at_any_line_of_a_wait_ends_it() -> None:
    with python(AT_EVERY_LINE) as process:
        try:
            said, _ = process.communicate(timeout=stretched(60))
        finally:
            process.kill()
    assert process.returncode == 0
    assert int(said.split()[1]) >= 1


def test_a_signal_wakes_who_waits_and_a_second_one_changes_nothing() -> None:
    with python(WAITING) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            began = time.monotonic()
            os.kill(process.pid, signal.SIGINT)
            assert process.stdout.readline() == "woken\n"
            # Before the line that lets it go on: a signal that comes while Python ends kills by its default.
            os.kill(process.pid, signal.SIGINT)
            said, _ = process.communicate("\n", timeout=stretched(60))
        finally:
            process.kill()
    assert (process.returncode, said) == (0, "SIGINT\n")
    assert time.monotonic() - began < stretched(30)
