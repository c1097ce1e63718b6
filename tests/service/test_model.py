"""The state machine of claims and leases, small; `tests/service/model_check.py` runs it large."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from db.engine import Database
from testbed.repetitions import examples
from tests.service.machine import ServiceMachine

SIZES = {"sqlite": (12, 60), "postgres": (4, 50)}


@pytest.fixture
def machine(database_url: str) -> Iterator[type[ServiceMachine]]:
    class Machine(ServiceMachine):
        database = Database(database_url)
        steps = 0
        examples = 0
        check_study_every = 12

    Machine.url = database_url
    yield Machine
    Machine.database.dispose()


def test_every_interleaving_keeps_the_invariants(
    machine: type[ServiceMachine], request: pytest.FixtureRequest
) -> None:
    count, length = SIZES[request.node.callspec.params["database_url"]]
    chosen = settings(
        examples(count, least=2),
        stateful_step_count=length,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)
    assert machine.steps > chosen.max_examples * length / 3
