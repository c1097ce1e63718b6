"""Winners of a fused MoE in the tables that an engine is shipped with, as hints for a job.

A table names the best configuration of each batch size, for one layer and device; its file's name says which.
"""

import json
import math
import re
from pathlib import Path

from benchmarks.triton.moe import NUMBERS
from warpsmith.domain.jobs.known_winner import KnownWinner

NAME = re.compile(r"E=(\d+),N=(\d+),device_name=([^,]+)\.json")
"""Half precision has no further words in its name."""
TOLD = tuple(n for n in NUMBERS if n != "GROUP_SIZE_M")
"""What winners tell. In which order blocks run often changes nothing, and then the tables have any value."""


def winners(folder: Path, device: str, experts: int, width: int) -> list[KnownWinner]:
    """Winners of all other layers' tables below a folder, each weighed by how like its layer is, in octaves.

    Args:
        device: what the device's name has to hold, as a regular expression.
        experts: of the layer that is searched, whose own tables are left out.
        width: columns of its second matrix on one device, as tables are named.
    """
    found: dict[tuple[int, ...], KnownWinner] = {}
    for file in sorted(folder.rglob("E=*.json")):
        named = NAME.fullmatch(file.name)
        if named is None or not re.search(device, named[3]) or named[3].endswith("_down"):
            continue
        own = (int(named[1]), int(named[2]))
        if own == (experts, width):
            continue
        away = math.log2(own[0] / experts) ** 2 + math.log2(own[1] / width) ** 2
        for tokens, row in json.loads(file.read_text()).items():
            if tokens.isdigit() and set(NUMBERS) <= set(row):
                key = (*own, int(tokens), *(int(row[n]) for n in NUMBERS))
                found[key] = KnownWinner(
                    dimensions={"M": int(tokens)},
                    configuration={n: int(row[n]) for n in TOLD},
                    weight=max(math.exp(-0.5 * away), 1e-12),
                )
    return list(found.values())
