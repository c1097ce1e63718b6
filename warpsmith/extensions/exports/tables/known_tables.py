"""Winners in the tables that an engine has, as hints for a job (`known_winners`)."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.templates.space import Configuration, ParameterValue
from warpsmith.extensions.exports.tables.engines import NEEDED, MoeShape
from warpsmith.extensions.exports.tables.model_config import SIZES

TOLD = tuple(n for n in NEEDED if n != "GROUP_SIZE_M")
"""What winners tell. In which order blocks run often changes nothing, and then the tables have any value."""
MOST = 1000
"""Winners of a job: those of the layers most like its own."""
LEAST = 1e-12
LIKELY = 4
"""Rows of other tables that a check tries for a batch size."""
_NAME = re.compile(r"E=(\d+),N=(\d+),device_name=([^,]+?)((?:,[^_]+?=.*?)?)(_down)?\.json")
_GENERATIONS = tuple(
    re.compile(rf"(?<![A-Z0-9])({names})(?![0-9])")
    for names in ("H100|H200|H800|H20", "A100|A800", "B200|B300|GB200|GB300", "MI300X|MI308X|MI325X")
)


def known_winners(folder: Path, shape: MoeShape, device: str) -> list[KnownWinner]:
    """Winners of the tables below a folder, for the same weights and devices of one generation.

    Each is weighed by how like its layer is, in octaves of `E` and `N`. One that won for several layers is
    there once, with their weights together.

    Args:
        device: name of the device.
    """
    seen: set[tuple[int, ...]] = set()
    weights: dict[tuple[int, ...], float] = {}
    own = _NAME.fullmatch(Path(shape.file("vLLM", "x")).name)
    assert own is not None, "engines write such names"
    for file in sorted(folder.rglob("E=*.json")):
        name = _NAME.fullmatch(file.name)
        if name is None or name[5] or _plain(name[4]) != _plain(own[4]) or not _alike(name[3], device):
            continue
        experts, size = int(name[1]), int(name[2])
        away = math.log2(experts / shape.experts) ** 2 + math.log2(size / shape.size) ** 2
        for tokens, row in table_rows(file).items():
            won = (tokens, *(int(row[n]) for n in TOLD))
            if (experts, size, *won) not in seen:
                seen.add((experts, size, *won))
                weights[won] = weights.get(won, 0.0) + max(math.exp(-0.5 * away), LEAST)
    most = sorted(weights.items(), key=lambda one: -one[1])[:MOST]
    return [
        KnownWinner(dimensions={"M": m}, configuration=dict(zip(TOLD, row, strict=True)), weight=weight)
        for (m, *row), weight in most
    ]


def table_rows(file: Path) -> dict[int, Configuration]:
    """Rows of a table by batch size; none of a file that is no table."""
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = {}
    for tokens, row in table.items() if isinstance(table, dict) else ():
        whole = isinstance(row, dict) and all(isinstance(row.get(n), int) for n in NEEDED)
        if whole and tokens.isdecimal() and int(tokens):
            found[int(tokens)] = {n: row[n] for n in NEEDED}
    return found


def tried_rows(
    rows: Mapping[int, Configuration] | None, winners: Sequence[KnownWinner]
) -> dict[int, list[Configuration]]:
    """Rows that a check tries, by batch size: the table's own, and those that won most elsewhere.

    Args:
        rows: of the table; None: it is missing, and sizes are those of the tables that engines come with.
        winners: as `known_winners` has them; without what they do not tell.
    """
    return {
        size: [*([rows[size]] if rows else ()), *_likely(winners, size)]
        for size in (rows or dict.fromkeys(SIZES))
    }


def _likely(winners: Sequence[KnownWinner], size: int) -> list[Configuration]:
    """The rows that won most, each weighed by how like its layer and size are."""
    worth: dict[tuple[tuple[str, ParameterValue], ...], float] = {}
    for winner in winners:
        away = math.log2(winner.dimensions["M"] / size)
        row = tuple(winner.configuration.items())
        worth[row] = worth.get(row, 0.0) + winner.weight * math.exp(-0.5 * away**2)
    return [dict(row) for row in sorted(worth, key=lambda row: -worth[row])[:LIKELY]]


def _alike(name: str, device: str) -> bool:
    """True for devices of one generation."""
    one, other = (re.sub(r"\W|_", " ", n) for n in (name, device))
    return one == other or any(g.search(one) and g.search(other) for g in _GENERATIONS)


def _plain(words: str) -> str:
    return words.replace(" ", "")
