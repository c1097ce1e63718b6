"""Warns of modules and documents that have grown long: `python scripts/lengths.py`.

A length is a hint, so the exit status is 0 with any of them.
"""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("warpsmith", "agents", "db", "worker", "api")
MAX_MODULE_LINES = 350
MAX_DOCUMENT_LINES = 200


def longer(paths: list[Path], limit: int) -> Iterator[str]:
    """A warning for each file with more lines than `limit`."""
    for path in sorted(paths):
        lines = len(path.read_text().splitlines())
        if lines > limit:
            yield f"warning: {path.relative_to(ROOT)} has {lines} lines, more than {limit}"


def main() -> None:
    """Print the warnings."""
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    for warning in longer(modules, MAX_MODULE_LINES):
        print(warning)
    for warning in longer(list((ROOT / "docs").rglob("*.md")), MAX_DOCUMENT_LINES):
        print(warning)


if __name__ == "__main__":
    main()
