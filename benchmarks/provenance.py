"""Of which commit a record is, and which command made it."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PLACES = re.compile(r" --(out|resume|keep|peer|spaces|hub|history) \S+")
"""Files and folders of one machine, which say nothing to anyone else."""


def commit_name() -> str:
    """As git describes it; WARPSMITH_COMMIT names it where git does not."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or os.environ.get("WARPSMITH_COMMIT", "unknown")


def plain_command(command: str) -> str:
    """A command line without the places of the machine that it ran on."""
    return _PLACES.sub("", command).replace(f"{ROOT}/", "").strip()
