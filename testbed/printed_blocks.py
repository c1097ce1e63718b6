"""Runs the Python blocks of a page as they are printed, as a user would in a folder of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[1]


def python_blocks(page: str) -> list[str]:
    """The Python blocks of a page, in order; `page` is its path in the repository."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)


def run_printed(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, without this project's settings; a `RuntimeWarning` ends it."""
    script = folder / "printed.py"
    script.write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    return subprocess.run(
        (sys.executable, "-W", "error::RuntimeWarning", script),
        check=False,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
    )
