"""Arguments of every kind on a GPU: structs with addresses, vectors, arrays of addresses, null pointers."""

import pytest

from tests.argument_jobs import SOURCE, every_kind
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import BaselineResult


def baseline_of(job: Job, info: DeviceInfo, pool: CompilePool) -> BaselineResult:
    session = DeviceSession(job, SessionPorts(ChildOpener(info), pool, ReferenceRunner()))
    found = measure_baseline(session)
    session.close()
    return found


def test_a_kernel_with_arguments_of_every_kind_is_right(info: DeviceInfo, pool: CompilePool) -> None:
    found = baseline_of(every_kind(), info, pool)
    assert found.refused == ""
    assert len({c.family for c in found.cases}) > 4
    assert any(c.neighbour_of for c in found.cases)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("((const float**)tables)[1] = p.x; y[i] = ", "changed the read-only tables"),
        ("p.seen[0][n] = v; y[i] = ", "wrote outside seen"),
        ("((long long*)places)[3] = 0; y[i] = ", "wrote outside places"),
        ("y[i] = 1.0f + ", "y is wrong"),
    ],
)
def test_what_lies_behind_addresses_is_guarded_and_compared(
    info: DeviceInfo, pool: CompilePool, changed: str, words: str
) -> None:
    found = baseline_of(every_kind(source=SOURCE.replace("y[i] = ", changed)), info, pool)
    assert words in found.refused
