"""Print the lines of each room beside its budget, and name long files: `python scripts/lengths.py`.

A room above its budget in `rooms.toml` is red; a long file is a hint.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("warpsmith", "agents", "db", "worker", "api")
BENCHMARKS = "benchmarks"
MAX_MODULE_LINES = 350
MAX_DOCUMENT_LINES = 200


def budgets() -> dict[str, int]:
    """Budget of each room in lines, by folder; `product` and `benchmarks` are sums."""
    table: dict[str, int] = tomllib.loads((ROOT / "rooms.toml").read_text())["lines"]
    return table


def lines_by_room(rooms: Mapping[str, int]) -> dict[str, int]:
    """Lines of Python in each room, migrations left out; a file counts for the deepest room that holds it."""
    found = dict.fromkeys(rooms, 0)
    for package in (*PACKAGES, BENCHMARKS):
        for path in (ROOT / package).rglob("*.py"):
            place = PurePosixPath(path.relative_to(ROOT).as_posix())
            if "migrations" in place.parts:
                continue
            lines = len(path.read_text().splitlines())
            room = next(str(p) for p in place.parents if str(p) in rooms)
            found[room] += lines
            if package != BENCHMARKS:
                found["product"] += lines
    return found


def longer(paths: list[Path], limit: int) -> Iterator[str]:
    """A warning for each file with more lines than `limit`."""
    for path in sorted(paths):
        lines = len(path.read_text().splitlines())
        if lines > limit:
            yield f"warning: {path.relative_to(ROOT)} has {lines} lines, more than {limit}"


def main() -> int:
    """Print the table and the warnings; returns 1 if a room is above its budget."""
    rooms = budgets()
    found = lines_by_room(rooms)
    for room, budget in rooms.items():
        print(f"{room:28}{found[room]:8,} of {budget:7,} lines{'   TOO MANY' * (found[room] > budget)}")
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    documents = list((ROOT / "docs").rglob("*.md"))
    print(*longer(modules, MAX_MODULE_LINES), *longer(documents, MAX_DOCUMENT_LINES), sep="\n")
    return int(any(found[room] > budget for room, budget in rooms.items()))


if __name__ == "__main__":
    sys.exit(main())
