"""Run the whole suite: first what may have company, three tests at a time, then what wants quiet cores.

Run: python scripts/suite.py [arguments of pytest]

Arguments go to both runs, so that a file or `-k` may select from either part, or from both. Each run ends
with its ten slowest tests. On a machine that does something else for a second, one test of thousands fails by
chance: up to `BY_CHANCE` failed tests of a part run once more, by themselves, and that verdict counts.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

# More than the cores of a small machine: many tests wait for processes, leases and sockets.
AT_A_TIME = 3
BESIDE = ("--part", "beside", "-n", str(AT_A_TIME), "--dist", "worksteal")
ALONE = ("--part", "alone")
SLOWEST = 10
BY_CHANCE = 5
"""Failed tests of a part up to which they run again; more have a cause in common."""


def verdict(codes: list[int]) -> int:
    """The exit status of all runs: the first failure; a part with no test is none, unless all have none."""
    ran = [code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED]
    return next((code for code in ran if code), 0) if ran else int(pytest.ExitCode.NO_TESTS_COLLECTED)


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What both parts run in: bytecode is kept, which hundreds of processes would compile anew."""
    return {name: value for name, value in given.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(part: tuple[str, ...], words: list[str]) -> int:
    """The exit status of one part, after a second run of the few that failed in it."""
    command = (sys.executable, "-m", "pytest")
    here = environment(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        failures = Path(folder) / "failures"
        first = [*command, f"--durations={SLOWEST}", *part, "--failures", str(failures), *words]
        code = subprocess.run(first, env=here, check=False).returncode
        failed = failures.read_text().splitlines() if failures.exists() else []
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed) <= BY_CHANCE:
        return code
    print(f"{len(failed)} failed; by itself runs once more:", *failed, sep="\n  ", flush=True)
    return subprocess.run([*command, *failed], env=here, check=False).returncode


def main() -> int:
    """Both parts, whatever comes of the first."""
    return verdict([run(part, sys.argv[1:]) for part in (BESIDE, ALONE)])


if __name__ == "__main__":
    sys.exit(main())
