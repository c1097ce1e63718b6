"""The Python blocks of docs/python.md, as printed: one program beside a service, on PoCL."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S
from testbed.service import Service

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
PRINTED = "127.0.0.1:8765"
"""Address of the service on the page; that of the test has another port."""


@pytest.mark.slow
def test_the_python_of_the_page_runs_as_printed(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 5 and any(PRINTED in block for block in BLOCKS)
    service = Service(tmp_path / "service").start()
    try:
        script = tmp_path / "page.py"
        script.write_text("\n\n".join(BLOCKS).replace(PRINTED, service.url.removeprefix("http://")))
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
        assert ran.returncode == 0, ran.stderr + service.logs()
        assert re.search(r"^matvec: (\d+\.\d\dx over all workloads|no gain)$", ran.stdout, re.M), ran.stdout
        assert re.search(r"^\S+ matvec: done, round \d/\d, \d+/\d+ trials", ran.stdout, re.M), ran.stdout
        assert re.search(r"^done: \d+ tried", ran.stderr, re.M), "progress outside a terminal"
    finally:
        service.stop()
