"""What the charts of a job are drawn from: points, single trials, seconds by stage, facts."""

import pytest

from testbed.api_service import Service
from testbed.stages import BEST, HOSTILE, ended, searched
from tests.api.clients import KINDS, ask
from tests.api.test_bad_input import problem_of
from tests.api.test_read import submit
from warpsmith.chart_models import JobSeconds, TrialPoints
from warpsmith.errors import InvalidInput
from warpsmith.http_models import JobResult, TrialPage, TrialView
from warpsmith.tuning.analysis.search_facts import Facts


@pytest.fixture
def job(service: Service) -> str:
    """A job whose search has some results."""
    made = submit(service.http)
    with service.database.write() as session:
        searched(session, made)
    return made


def test_points_are_the_trials_in_columns(service: Service, job: str) -> None:
    reply = service.http.get(f"/v1/jobs/{job}/points")
    found = TrialPoints.model_validate_json(reply.content)
    trials = TrialPage.model_validate_json(service.http.get(f"/v1/jobs/{job}/trials").content).items
    done = [t for t in trials if t.outcome is not None]
    assert found.number == tuple(t.number for t in done)
    assert found.at_s == tuple(t.at_s for t in done)
    assert [None if g is None else round(g, 4) for g in found.gain] == [1.0, 1.4286, None, None]
    assert [r.reason for r in found.rejections] == [f"y: # of # elements differ {HOSTILE}"]
    late = TrialPoints.model_validate_json(
        service.http.get(f"/v1/jobs/{job}/points", params={"since": 3600}).content
    )
    assert late.number == ()


@pytest.mark.parametrize("since", ["-1", "nan", "inf", "1e300", "soon"])
def test_a_bad_second_is_named(service: Service, job: str, since: str) -> None:
    problem = problem_of(service.http.get(f"/v1/jobs/{job}/points", params={"since": since}), 422)
    assert problem.errors[0].field == "query.since"


def test_a_trial_comes_by_its_number(service: Service, job: str) -> None:
    found = TrialView.model_validate_json(service.http.get(f"/v1/jobs/{job}/trials/1").content)
    assert (found.number, found.configuration, found.round) == (1, BEST, 1)
    problem_of(service.http.get(f"/v1/jobs/{job}/trials/99"), 404)
    for bad in ("-1", "first", str(2**31)):
        problem = problem_of(service.http.get(f"/v1/jobs/{job}/trials/{bad}"), 422)
        assert problem.errors[0].field == "path.number"


def test_the_seconds_of_a_job_are_told(service: Service, job: str) -> None:
    found = JobSeconds.model_validate_json(service.http.get(f"/v1/jobs/{job}/seconds").content)
    assert found.seconds == pytest.approx(sum(s.seconds for s in found.stages))


def test_the_facts_so_far_are_those_of_the_result(service: Service) -> None:
    job = submit(service.http)
    problem = problem_of(service.http.get(f"/v1/jobs/{job}/facts"), 409)
    assert "has no baseline yet" in problem.detail
    with service.database.write() as session:
        ended(session, job)
    found = Facts.model_validate_json(service.http.get(f"/v1/jobs/{job}/facts").content)
    result = JobResult.model_validate_json(service.http.get(f"/v1/jobs/{job}/result").content)
    assert found == result.facts
    assert found.best is not None and found.best.configuration == BEST


@pytest.mark.parametrize("kind", KINDS)
def test_the_clients_ask_for_them(service: Service, job: str, kind: str) -> None:
    def asked(method: str, *args: object) -> object:
        return ask(kind, str(service.http.base_url), service.key, method, *args)

    points = asked("points", job)
    assert isinstance(points, TrialPoints) and len(points.number) == 4
    later = asked("points", job, 3600.0)
    assert isinstance(later, TrialPoints) and later.number == ()
    trial = asked("trial", job, 1)
    assert isinstance(trial, TrialView) and trial.configuration == BEST
    assert isinstance(asked("seconds", job), JobSeconds)
    assert isinstance(asked("facts", job), Facts)
    with pytest.raises(InvalidInput, match="no baseline yet"):
        asked("facts", submit(service.http))
