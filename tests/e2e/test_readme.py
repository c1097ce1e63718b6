"""The Python of the README, as it is printed there, on PoCL."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{n}" for n in range(len(BLOCKS))])
def test_the_python_of_the_readme_runs_as_printed(tmp_path: Path, block: str) -> None:
    script = tmp_path / "block.py"
    script.write_text(block)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    ran = subprocess.run(
        (sys.executable, "-W", "error::RuntimeWarning", script),
        check=False,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    assert re.match(r"matvec: (\d+\.\d\dx over all workloads|no gain)\n", ran.stdout), ran.stdout
    assert "columns=3001,rows=1000" in ran.stdout
    assert re.search(r"\d+ configurations tried", ran.stdout), ran.stdout
    assert re.search(r"^\{.*\}$", ran.stdout, re.M), "the configuration that serves these sizes"
