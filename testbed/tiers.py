"""Choose the tests of the gate, `make test`, and those that `make test-full` runs besides.

A test that costs less than `DEAR_CORE_S` is in the gate. A dearer one is there if `tests/gate.toml` lists it
with the promise that it alone keeps. `tests/dear.tsv` has the costs, as `make test-full` recorded them.
"""

import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROMISES = ROOT / "tests" / "gate.toml"
COSTS = ROOT / "tests" / "dear.tsv"
DEAR_CORE_S = 0.3
"""Core-seconds from which a test needs a place on the list."""
TIERS = ("gate", "rest", "full")
"""The gate, all others, and both."""
BOTH_DATABASES = ("tests/db/", "tests/e2e/")
"""Folders whose tests run on both databases in the gate too; elsewhere Postgres is enough, if it is cheap."""


@cache
def promises() -> Mapping[str, str]:
    """Dear tests of the gate: what a user would lose that no cheaper test notices.

    A name without a case stands for all cases of a test.
    """
    return {
        f"{path}::{name}": promise
        for path, tests in tomllib.loads(PROMISES.read_text()).items()
        for name, promise in tests.items()
    }


def read_costs(path: Path) -> Mapping[str, float]:
    """Core-seconds by test, from lines `seconds<TAB>test`; a test that ran twice has its last cost."""
    rows = (line.split("\t", 1) for line in path.read_text().splitlines())
    return {name: float(seconds) for seconds, name in rows}


@cache
def recorded_costs() -> Mapping[str, float]:
    """Core-seconds of the tests that were dear when the full suite ran last."""
    return read_costs(COSTS)


def in_gate(name: str) -> bool:
    """True for a test that `make test` runs."""
    if name in promises() or name.partition("[")[0] in promises():
        return True
    return name not in recorded_costs() and not _second_database(name)


def in_tier(name: str, tier: str) -> bool:
    """True for a test that a run of that tier includes; every test is in `full`."""
    return tier == "full" or in_gate(name) == (tier == "gate")


def dealt(items: Sequence[pytest.Item], hands: int) -> list[pytest.Item]:
    """Order tests so that each of several processes begins with cheap files and ends with its least dear one.

    Args:
        hands: processes; each gets about one of so many equal parts of the list.
    """
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.nodeid.split("::")[0]].append(item)
    costs = recorded_costs()
    dear = {file: sum(costs.get(item.nodeid, 0.0) for item in those) for file, those in files.items()}
    # A dear file that began last would run by itself in the end.
    order = sorted(
        files, key=lambda file: (dear[file] > 0, -dear[file], not file.startswith("tests/unit/"), file)
    )
    return [item for hand in range(hands) for file in order[hand::hands] for item in files[file]]


def _second_database(name: str) -> bool:
    """True for a copy on SQLite of a test that the gate runs on Postgres."""
    if "[sqlite" not in name or name.startswith(BOTH_DATABASES):
        return False
    return in_gate(name.replace("[sqlite", "[postgres", 1))
