"""Find the rooms that changed, by git, and the tests of each, by `rooms.toml`."""

import json
import os
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ROOT / "rooms.toml"
RECORD = ROOT / "benchmarks" / "results" / "suite" / "full.json"
"""The last record of the full suite; its commit is the base of what lies on the main branch itself."""
BASE = "WARPSMITH_BASE"
"""Environment variable that names another base."""
REPOSITORY = ("tests/unit/repository", "tests/e2e/test_wheel.py")
"""Tests of files that belong to no room."""


def changed_paths() -> tuple[str, list[str]]:
    """The commit that a change starts from, and every path that differs from it, committed or not.

    Raises:
        RuntimeError: the base is no commit of this clone.
    """
    base = os.environ.get(BASE) or _branch_base() or str(_record()["commit"])
    try:
        names = _git("diff", "--name-only", "-z", base) + _git("ls-files", "-z", "-o", "--exclude-standard")
    except subprocess.CalledProcessError as exc:
        raise RuntimeError(f"{base} is no commit of this clone; name another in {BASE}") from exc
    return base, sorted(name for name in set(names.split("\0")) if name)


def failed_before() -> list[str]:
    """Tests that failed when the full suite was recorded; they run until it is recorded without them."""
    return list(_record()["failed"])


def _record() -> Any:
    return json.loads(RECORD.read_text())


def read_rooms() -> dict[str, list[str]]:
    """Files and folders of tests, by the folder of the room whose promises they hold."""
    table: dict[str, list[str]] = tomllib.loads(ROOMS.read_text())["tests"]
    return table


def tests_of(paths: Iterable[str]) -> list[str]:
    """Files and folders of tests that belong to the rooms of these paths; none within another."""
    chosen = {test for path in paths for test in _tests_of_one(PurePosixPath(path))}
    return sorted(test for test in chosen if not any(str(p) in chosen for p in PurePosixPath(test).parents))


def _tests_of_one(path: PurePosixPath) -> list[str]:
    if path.parts[0] == "tests" and path.suffix == ".py":
        # A helper serves its folder; those on top serve all.
        return _present(str(path) if path.name.startswith("test_") else str(path.parent))
    rooms = read_rooms()
    if room := next((str(p) for p in path.parents if str(p) in rooms), None):
        return rooms[room]
    return [] if path.suffix == ".md" else list(REPOSITORY)


def _present(test: str) -> list[str]:
    return [test] if (ROOT / test).exists() else []


def _branch_base() -> str:
    """The commit at which this branch left the remote's main one; empty on that one, and without one."""
    try:
        base, head = _git("merge-base", "origin/main", "HEAD").strip(), _git("rev-parse", "HEAD").strip()
    except subprocess.CalledProcessError:
        return ""
    return "" if base == head else base


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
