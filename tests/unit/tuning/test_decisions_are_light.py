"""Decisions load without what measures: no arrays, no session with a device."""

import subprocess
import sys

PROGRAM = """
import sys
import warpsmith.tuning.decisions.decide
heavy = [m for m in sys.modules if m == "numpy" or m.startswith("warpsmith.tuning.session")]
assert not heavy, heavy
"""


def test_decisions_load_neither_numpy_nor_a_session() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
