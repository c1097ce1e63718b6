"""Where a record goes, of which commit it is, and which command made it."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warpsmith.commit import commit_name
from warpsmith.domain.device import DeviceInfo

ROOT = Path(__file__).resolve().parents[1]
_PLACES = re.compile(r" --(out|state|resume|keep|peer|spaces|hub|history|mirrors|checkouts|jobs-dir) \S+")
"""Files and folders of one machine, which say nothing to anyone else."""


def record_folder(text: str) -> Path:
    """A folder for records, made when the command line is read: no work of minutes is lost."""
    path = Path(text)
    path.mkdir(parents=True, exist_ok=True)
    return path


def head(device: DeviceInfo, command: str) -> dict[str, Any]:
    """What every record of a run on a device begins with."""
    return {
        "device": device.name,
        "driver": device.driver,
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plain_command(command),
    }


def plain_command(command: str) -> str:
    """A command line without the places of the machine that it ran on."""
    return _PLACES.sub("", command).replace(f"{ROOT}/", "").strip()
