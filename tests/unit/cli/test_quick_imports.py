"""The garbage collector rests during large imports, and is as it was after them."""

import gc
import subprocess
import sys

import pytest

from testbed.deadlines import HANGS_S
from warpsmith.processes.quick_imports import without_collector


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_and_is_as_it_was_whatever_happens(enabled: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ImportError), without_collector():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_an_application_is_loaded_without_the_collector_which_then_goes_on() -> None:
    program = """
import gc
from warpsmith import applications
looked_at = []
def note(phase, facts):
    if phase == "start":
        looked_at.append(len(gc.get_objects()))
gc.callbacks.append(note)
gc.collect()
before = looked_at.pop()
applications.load("db.tables")
gc.collect()
print(len(looked_at), before, looked_at[-1], gc.isenabled())
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    collections, before, after, enabled = ran.stdout.split()
    assert int(collections) <= 3, "those that this program asked for, or made itself"
    assert int(after) < int(before) and enabled == "True"
