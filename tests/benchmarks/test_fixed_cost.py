"""The bench of a job's fixed cost: its clock, and a page of a record."""

import time
from unittest.mock import patch

import pytest

from benchmarks.service import stage_clock
from benchmarks.service.fixed_cost import SMOKE_SHAPES, own_job, page
from benchmarks.service.stage_clock import WRAPPED, StageClock
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.sandbox import ReferenceRunner

DOUBLED = """
import time
def reference(inputs, dims):
    time.sleep(0.02)
    return {"y": 2 * inputs["x"]}
"""


def _inner() -> None:
    time.sleep(0.02)


def _outer() -> None:
    time.sleep(0.02)
    _inner()


def test_parts_exclude_each_other_and_leave_the_rest() -> None:
    places = (("outer", f"{__name__}:_outer"), ("inner", f"{__name__}:_inner"))
    clock = StageClock()
    with patch.object(stage_clock, "WRAPPED", places), clock.installed(), clock.stage("search"):
        _outer()
        time.sleep(0.02)
    (row,) = clock.record().values()
    parts = row["parts"]
    assert min(parts["outer"], parts["inner"], row["rest"]) >= 0.01, "each has its own sleep"
    assert row["seconds"] == pytest.approx(sum(parts.values()) + row["rest"], abs=0.02)


def test_all_that_is_wrapped_exists_and_is_given_back() -> None:
    clock = StageClock()
    with clock.installed():
        pass
    assert {part for part, _ in WRAPPED} >= {"reference", "compare", "energy", "sanitizer"}


def test_a_child_says_where_its_seconds_went() -> None:
    x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (64,), None)
    y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, (64,), None)
    clock = StageClock()
    with clock.installed(), clock.stage("baseline"):
        ReferenceRunner().numpy(DOUBLED, "reference", WorkloadPlan("w", (x, y), seed=3), {})
    (row,) = clock.record().values()
    assert row["in_children"]["reference"] >= 0.02
    assert row["calls"]["process start"] == 1


def test_the_job_is_valid_and_a_record_has_a_page() -> None:
    job = own_job(SMOKE_SHAPES, 8.0)
    assert [w.key for w in job.workloads] == ["hidden=512,rows=4", "hidden=1024,rows=16"]
    row = {
        "seconds": 2.5,
        "parts": {"compare": 1.0},
        "rest": 1.5,
        "in_other_threads": {},
        "in_children": {"draw": 0.5},
    }
    record = {
        **dict.fromkeys(("device", "driver", "commit", "when", "command", "detail", "ended"), "x"),
        "cores": 2,
        "load_average": 1.0,
        "job": "j",
        "workloads": ["n=1"],
        "budget_s": 8.0,
        "seconds": 9.0,
        "first_trial_s": 4.0,
        "trials": 3,
        "stages": {"baseline": row},
    }
    assert "| baseline | 2.5 | compare 1 | 1.5 | - | draw 0.5 |" in page(record)
