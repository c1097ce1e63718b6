"""The Python of the README, as it is printed there, on PoCL."""

import re
from pathlib import Path

import pytest

from testbed.printed_blocks import python_blocks, run_printed

BLOCKS = python_blocks("README.md")


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{n}" for n in range(len(BLOCKS))])
def test_the_python_of_the_readme_runs_as_printed(tmp_path: Path, block: str) -> None:
    ran = run_printed(block, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert re.match(r"matvec: (\d+\.\d\dx over all workloads|no gain)\n", ran.stdout), ran.stdout
    assert "columns=3001,rows=1000" in ran.stdout
    assert re.search(r"\d+ configurations tried", ran.stdout), ran.stdout
    assert re.search(r"^\{.*\}$", ran.stdout, re.M), "the configuration that serves these sizes"
