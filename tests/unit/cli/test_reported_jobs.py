"""Jobs whose kinds others reported as faults of tuners and compilers, as they would post them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S
from tests.unit.cli.test_validate import ran

ROOT = Path(__file__).resolve().parents[3]
REPORTS = ROOT / "tests" / "data" / "reports"


def test_structs_of_doubles_around_the_buffers_are_passed_by_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = ran(capsys, REPORTS / "struct_by_value.yaml", "--compile")
    assert code == 0
    assert "launched once, on the smallest workload: right\n" in out


def cli(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`warpsmith` in a process of its own, in which a launch may take two seconds."""
    limits = {
        "WARPSMITH_RUN_TIMEOUT_S": "2",
        "WARPSMITH_DATA_DIR": str(folder / "data"),
        "PYTHONPATH": str(ROOT),
    }
    command = (sys.executable, "-m", "warpsmith", *map(str, arguments))
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | limits, timeout=HANGS_S
    )


@pytest.mark.slow
def test_a_kernel_without_end_is_named_and_ended(tmp_path: Path) -> None:
    ran = cli(tmp_path, "validate", "--compile", REPORTS / "hang.yaml")
    assert ran.returncode == 2
    assert "no answer within 2 s (WARPSMITH_RUN_TIMEOUT_S is 2)" in ran.stderr


@pytest.mark.slow
def test_configurations_that_write_other_halves_hide_none_of_each_other(tmp_path: Path) -> None:
    ran = cli(tmp_path, "tune", REPORTS / "halves.yaml", "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    rejected = json.loads((tmp_path / "out" / "result.json").read_text())["rejections"]
    halves = [r for r in map(str, rejected) if "512 of 1024 elements were never written" in r]
    assert len(halves) == len(rejected) > 0
