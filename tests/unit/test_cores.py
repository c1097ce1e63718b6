"""How many cores a process may keep busy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.processes.cores import usable_cores

ALLOWED = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000\n", ALLOWED),
        ("50000 100000\n", 1),
        (f"{100000 * (ALLOWED + 5)} 100000\n", ALLOWED),
        ("", ALLOWED),
        ("100000 0\n", ALLOWED),
    ],
)
def test_processor_time_of_a_container_counts(tmp_path: Path, text: str, cores: int) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert usable_cores(quota) == cores


def test_a_process_that_is_tied_to_one_core_has_one() -> None:
    """A worker on a quarter of a machine compiled with as many children as the whole machine has cores."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from warpsmith.processes.cores import usable_cores; print(usable_cores())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "1"
