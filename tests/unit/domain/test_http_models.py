"""What travels over HTTP arrives as it was sent, and what does not fit is refused."""

import inspect
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from testbed.rows import measured, rejected
from tests.unit.cli.test_report import BEST, result
from warpsmith import http_models
from warpsmith.domain.base import Frozen
from warpsmith.domain.state import JobState, TrialState
from warpsmith.domain.templates.outcome import Stage
from warpsmith.domain.templates.space import ParameterValue
from warpsmith.http_models import (
    CandidateList,
    CandidateView,
    FieldProblem,
    JobPage,
    JobResult,
    JobStatus,
    Problem,
    RejectionCount,
    TrialPage,
    TrialView,
    WorkerList,
    WorkerView,
    WorkloadProgress,
)
from warpsmith.testing.jobs import scale_job

NOW = datetime(2026, 7, 28, 12, 30, 15, 123456, tzinfo=UTC)
MODELS = [
    m for _, m in inspect.getmembers(http_models, inspect.isclass) if m.__module__ == http_models.__name__
]


def status(**changes: Any) -> JobStatus:
    fields: dict[str, Any] = {
        "id": "01m7", "name": "scale", "state": JobState.SEARCHING, "detail": "grüße", "backend": "opencl",
        "device_class": "opencl-test-1", "round": 1, "rounds": 2, "trials_done": 3, "trials_rejected": 1,
        "trials_budget": 12, "feasible": 16, "best_speedup": 1.5, "created_at": NOW, "started_at": NOW,
        "workloads": (WorkloadProgress(workload="n=1", baseline_us=2.0, best_us=1.0, speedup=2.0),),
        "seconds_left": 12.25, "tokens_used": 7, "usd_used": 0.125,
    }  # fmt: skip
    return JobStatus(**(fields | changes))


def trial(outcome: Any, configuration: dict[str, ParameterValue] | None = None) -> TrialView:
    return TrialView(
        number=3,
        candidate="c1",
        round=1,
        configuration=configuration or BEST,
        state=TrialState.FINISHED if outcome else TrialState.PROPOSED,
        outcome=outcome,
        seconds=0.25,
    )


WORKER = WorkerView(
    id="w1",
    hostname="host",
    version="0.1.0",
    queues=("gpu", "control"),
    devices=("opencl-test-1",),
    unavailable={"cuda": "no driver"},
    last_seen=NOW,
    alive=True,
)
SENT: list[BaseModel] = [
    status(),
    status(state=JobState.DONE, finished_at=NOW, seconds_left=None),
    JobPage(items=(status(), status(id="02")), next="02"),
    JobPage(items=()),
    TrialPage(
        items=(
            trial(measured({"n=1": 1.5, "n=2": 0.001}, 0.75)),
            trial(rejected("y: 3 of 4 elements differ \u0000 \U0001f600", Stage.RUN)),
            trial(None),
        ),
        next=3,
    ),
    CandidateList(items=result().candidates),
    result(),
    result(state=JobState.FAILED, speedup=None, comparisons=(), dispatch=(), candidates=(), rejections=()),
    WorkerList(items=(WORKER,)),
    RejectionCount(stage="compile", reason="no", count=2, example={"A": True, "B": 1, "C": 1.0, "D": "x"}),
    Problem(title="Bad", status=422, detail="x", errors=(FieldProblem(field="a.0", message="m"),)),
]


@pytest.mark.parametrize("sent", SENT, ids=lambda m: type(m).__name__)
def test_what_is_sent_arrives(sent: BaseModel) -> None:
    for text in (sent.model_dump_json(), sent.model_dump_json(indent=1)):
        assert type(sent).model_validate_json(text) == sent
    assert type(sent).model_validate(json.loads(sent.model_dump_json())) == sent


values = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True),
)


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), values, min_size=1))
def test_values_of_a_configuration_keep_their_types(configuration: dict[str, ParameterValue]) -> None:
    sent = trial(None, configuration)
    got = TrialView.model_validate_json(sent.model_dump_json())
    assert got.configuration == configuration
    assert [type(v) for v in got.configuration.values()] == [type(v) for v in configuration.values()]


@given(st.text(), st.text())
def test_any_text_of_a_problem_arrives(detail: str, field: str) -> None:
    sent = Problem(title="t", status=400, detail=detail, errors=(FieldProblem(field=field, message=detail),))
    assert Problem.model_validate_json(sent.model_dump_json()) == sent


def test_the_job_in_a_result_is_the_job_that_was_sent() -> None:
    job = scale_job(constraints=[{"expression": "BLOCK * PER <= 1024", "reason": "r"}], seed=5)
    got = JobResult.model_validate_json(result(job=job).model_dump_json())
    assert got.job == job
    assert got.job.model_dump_json() == job.model_dump_json()


def test_times_keep_their_zone() -> None:
    text = status().model_dump_json()
    assert '"created_at":"2026-07-28T12:30:15.123456Z"' in text
    assert JobStatus.model_validate_json(text).created_at.utcoffset() is not None


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_every_model_is_frozen_and_takes_no_unknown_field(model: type[BaseModel]) -> None:
    assert issubclass(model, Frozen)
    assert model.__doc__
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"surplus": 1})
    assert ("surplus",) in {e["loc"] for e in caught.value.errors()}


def test_the_list_of_models_is_complete() -> None:
    assert len(MODELS) >= 14
    assert {type(m) for m in SENT} <= set(MODELS)
    assert CandidateView in MODELS


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (JobStatus, status().model_dump_json().replace('"searching"', '"dancing"')),
        (JobStatus, status().model_dump_json().replace("1.5", "NaN")),
        (JobStatus, status().model_dump_json().replace("1.5", "1e999")),
        (JobStatus, "{}"),
        (JobStatus, "[]"),
        (JobStatus, ""),
        (JobStatus, "<html>"),
        (TrialView, trial(rejected("x")).model_dump_json().replace('"rejected"', '"accepted"')),
        (TrialView, trial(rejected("x")).model_dump_json().replace('"correctness"', '"luck"')),
        (TrialView, trial(None).model_dump_json().replace("256", "null")),
        (TrialView, trial(None).model_dump_json().replace("256", '"a b"')),
    ],
)
def test_what_does_not_fit_is_refused(model: type[BaseModel], text: str) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(text)
