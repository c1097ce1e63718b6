"""Fixtures that every folder of tests may use, and the two parts in which `make test` runs the suite."""

import gc
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from testbed.databases import (
    database,
    database_url,
    migrated_postgres,
    migrated_sqlite,
    postgres_template,
    sqlite_template,
)
from testbed.repetitions import examples, nightly
from testbed.servers import postgres_session, postgres_url, redis_session, redis_url
from testbed.tiers import TIERS, dealt, in_tier
from warpsmith.system.temporary_folder import temporary_folder

__all__ = [
    "database",
    "database_url",
    "migrated_postgres",
    "migrated_sqlite",
    "postgres_session",
    "postgres_template",
    "postgres_url",
    "redis_session",
    "redis_url",
    "sqlite_template",
]


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder() -> Iterator[None]:
    """What tests start, and what they kill, leaves nothing on this machine."""
    with temporary_folder():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--part`, beside which `-m` stays free for whoever runs the tests."""
    parser.addoption("--part", choices=("beside", "alone"), help="tests that may have company, or the others")
    parser.addoption(
        "--tier", choices=TIERS, default="full", help="the gate's tests, the others, or (default) all"
    )
    parser.addoption("--failures", type=Path, help="file that gets the failed tests, one a line")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what failed for `scripts/suite.py`; of several processes only the first has this summary."""
    if (path := config.getoption("--failures")) is not None:
        reports = (r for kind in ("failed", "error") for r in terminalreporter.getreports(kind))
        path.write_text("".join(f"{name}\n" for name in dict.fromkeys(r.nodeid for r in reports)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files for the part `alone` that cannot have a test of it: their text lacks the marker."""
    if config.getoption("--part") != "alone" or collection_path.suffix != ".py":
        return None
    # A false alarm costs an import; `pytest_collection_modifyitems` decides.
    return None if ".alone" in collection_path.read_text() else True


def pytest_configure() -> None:
    """Properties that say no count of their own have this one."""
    # A GPU node that runs `tests/gpu` need not have it.
    if find_spec("hypothesis") is not None:
        from hypothesis import settings

        settings.register_profile("warpsmith", settings(examples(100), deadline=settings().deadline))
        settings.load_profile("warpsmith")


def pytest_collection_finish() -> None:
    """Spare the collector what lives until the end: thousands of tests, and everything that they import."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other part (without `--part` both run), other tiers and, by day, the night's."""
    part, tier, night = config.getoption("--part"), config.getoption("--tier"), nightly()

    def wanted(item: pytest.Item) -> bool:
        alone, late = (item.get_closest_marker(name) is not None for name in ("alone", "nightly"))
        here = part in (None, "alone" if alone else "beside") and in_tier(item.nodeid, tier)
        return here and (night or not late)

    chosen = {item: wanted(item) for item in items}
    config.hook.pytest_deselected(items=[item for item, here in chosen.items() if not here])
    hands = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = dealt([item for item, here in chosen.items() if here], hands)
