"""Run the whole suite: first what may have company, three tests at a time, then what wants quiet cores.

Run: python scripts/suite.py [arguments of pytest]

Arguments go to both runs, so that a file or `-k` may select from either part, or from both. Each run ends
with its ten slowest tests.
"""

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

# More than the cores of a small machine: many tests wait for processes, leases and sockets.
AT_A_TIME = 3
BESIDE = ("--part", "beside", "-n", str(AT_A_TIME), "--dist", "worksteal")
ALONE = ("--part", "alone")
SLOWEST = 10


def verdict(codes: list[int]) -> int:
    """The exit status of all runs: the first failure; a part with no test is none, unless all have none."""
    ran = [code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED]
    return next((code for code in ran if code), 0) if ran else int(pytest.ExitCode.NO_TESTS_COLLECTED)


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What both parts run in: bytecode is kept, which hundreds of processes would compile anew."""
    return {name: value for name, value in given.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> int:
    """Both parts, whatever comes of the first."""
    command = (sys.executable, "-m", "pytest", f"--durations={SLOWEST}")
    here = environment(os.environ)
    return verdict(
        [
            subprocess.run([*command, *part, *sys.argv[1:]], env=here, check=False).returncode
            for part in (BESIDE, ALONE)
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
