"""The state machine of `machine.py`, large.

Run: python -m tests.service.model_check [--steps 100000] [--postgres] [--out FILE]
"""

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from db import migrate
from db.engine import Database
from testbed.postgres_process import PostgresProcess
from tests.service.machine import ServiceMachine
from warpsmith import __version__

LENGTH = 200
BATCH = 50
"""Examples before the count of steps is looked at again."""
STUDY_EVERY = 25


def check(url: str, steps: int) -> dict[str, int | float]:
    """Run until so many rules have been called; raises where an invariant fails."""
    migrate.upgrade(url)

    class Machine(ServiceMachine):
        database = Database(url)
        check_study_every = STUDY_EVERY

    Machine.url = url
    chosen = settings(
        max_examples=BATCH,
        stateful_step_count=LENGTH,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    began = time.monotonic()
    try:
        while Machine.steps < steps:
            run_state_machine_as_test(Machine, settings=chosen)
            print(f"{Machine.steps} steps, {Machine.examples} examples", flush=True)
    finally:
        Machine.database.dispose()
    return {
        "steps": Machine.steps,
        "examples": Machine.examples,
        "violations": 0,
        "seconds": round(time.monotonic() - began, 1),
    }


@contextmanager
def database_url(postgres: bool) -> Iterator[str]:
    """A database of its own."""
    if postgres:
        with PostgresProcess() as server:
            yield server.url
        return
    with tempfile.TemporaryDirectory(prefix="warpsmith-model-") as folder:
        yield f"sqlite:///{folder}/model.db"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with database_url(options.postgres) as url:
        figures = check(url, options.steps)
    record = {
        "what": "state machine over claim, heartbeat, finish, fail, expire, stop, cancel; six invariants",
        "database": "postgres" if options.postgres else "sqlite",
        "warpsmith": __version__,
        **figures,
    }
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
