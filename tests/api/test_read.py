"""What the API shows of jobs: lists, statuses, trials, candidates, results."""

from typing import Any

import httpx2
import pytest

from testbed.api_service import Service
from testbed.stages import BEST, HOSTILE, LARGE, SMALL, ended, searched
from tests.api.jobs import body
from tests.api.test_bad_input import problem_of
from warpsmith.http_models import CandidateList, JobPage, JobResult, JobStatus, TrialPage, TrialView
from warpsmith.testing.jobs import DEVICE, scale_job

PAGES = ("", "/trials", "/candidates", "/result")


def submit(http: httpx2.Client, **changes: Any) -> str:
    """Post the two-workload job; its id."""
    reply = http.post("/v1/jobs", json=scale_job(**changes).model_dump(mode="json", exclude_unset=True))
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def test_jobs_are_listed_newest_first_page_by_page(http: httpx2.Client) -> None:
    mine = [http.post("/v1/jobs", json=body(name=f"page {i}")).json()["id"] for i in range(5)]
    seen: list[str] = []
    after = None
    for size in (2, 2, 1):
        params: dict[str, Any] = {"limit": size} | ({"after": after} if after else {})
        page = JobPage.model_validate_json(http.get("/v1/jobs", params=params).content)
        assert len(page.items) == size
        seen += [item.id for item in page.items]
        after = page.next
        assert after == seen[-1] or after is None
    assert seen == sorted(mine, reverse=True)


def test_the_last_page_says_so(embedded: Service) -> None:
    http = embedded.http
    assert http.get("/v1/jobs").json() == {"items": [], "next": None}
    ids = [http.post("/v1/jobs", json=body()).json()["id"] for _ in range(2)]
    assert http.get("/v1/jobs", params={"limit": 2}).json()["next"] is None
    first = http.get("/v1/jobs", params={"limit": 1}).json()
    assert first["next"] == max(ids)
    last = http.get("/v1/jobs", params={"limit": 1, "after": first["next"]}).json()
    assert ([i["id"] for i in last["items"]], last["next"]) == ([min(ids)], None)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "query.limit"),
        ("limit=201", "query.limit"),
        ("limit=many", "query.limit"),
        ("after=" + "x" * 65, "query.after"),
        ("after=%00", "query.after"),
    ],
)
def test_a_bad_query_is_named(http: httpx2.Client, query: str, field: str) -> None:
    (error,) = problem_of(http.get(f"/v1/jobs?{query}"), 422).errors
    assert error.field == field


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "after=-2", "after=2147483648", "after=x"])
def test_a_bad_query_of_trials_is_named(http: httpx2.Client, query: str) -> None:
    (error,) = problem_of(http.get(f"/v1/jobs/{submit(http)}/trials?{query}"), 422).errors
    assert error.field == f"query.{query.partition('=')[0]}"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("job", ["nope", "01m7yfr5yvpa6d4exx10v5r9yf", "%F0%9F%98%80", "..%5C", "';--"])
def test_an_unknown_job_is_not_found(http: httpx2.Client, job: str, page: str) -> None:
    problem_of(http.get(f"/v1/jobs/{job}{page}"), 404)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("job", ["%00", "x" * 65])
def test_an_impossible_id_is_named(http: httpx2.Client, job: str, page: str) -> None:
    (error,) = problem_of(http.get(f"/v1/jobs/{job}{page}"), 422).errors
    assert error.field == "path.job_id"


def test_a_new_job_has_no_trials_candidates_or_result(http: httpx2.Client) -> None:
    job = submit(http)
    assert http.get(f"/v1/jobs/{job}/trials").json() == {"items": [], "next": None}
    assert http.get(f"/v1/jobs/{job}/candidates").json() == {"items": []}
    found = problem_of(http.get(f"/v1/jobs/{job}/result"), 409)
    assert found.detail == f"job {job} has not ended; poll /v1/jobs/{job} until its state is terminal"


def test_the_status_of_a_search(service: Service) -> None:
    job = submit(service.http)
    with service.database.write() as session:
        searched(session, job)
    status = JobStatus.model_validate_json(service.http.get(f"/v1/jobs/{job}").content)
    assert (status.state.value, status.device_class) == ("searching", DEVICE.device_class)
    # An embedded service has its own worker.
    alone = "" if service.settings.embedded else "no worker is alive; start one with `warpsmith worker`; "
    assert status.detail == f"{alone}searching"
    assert (status.trials_done, status.trials_rejected, status.feasible) == (4, 2, 16)
    assert status.best_speedup == pytest.approx(2**0.5)
    assert [(w.workload, w.baseline_us, w.best_us, w.speedup) for w in status.workloads] == [
        (LARGE, 100.0, 50.0, 2.0),
        (SMALL, 40.0, 40.0, 1.0),
    ]
    assert status.seconds_left is not None
    assert 0 < status.seconds_left <= 60
    assert status.finished_at is None
    problem_of(service.http.get(f"/v1/jobs/{job}/result"), 409)


def test_trials_come_in_order_with_outcomes_and_reasons(service: Service) -> None:
    job = submit(service.http)
    with service.database.write() as session:
        found = searched(session, job)
    items: list[TrialView] = []
    after = None
    for size in (2, 2, 2):
        params: dict[str, Any] = {"limit": size} | ({} if after is None else {"after": after})
        page = TrialPage.model_validate_json(
            service.http.get(f"/v1/jobs/{job}/trials", params=params).content
        )
        items += page.items
        after = page.next
    assert after is None
    assert [t.number for t in items] == [0, 1, 2, 3, 4]
    assert {t.candidate for t in items} == {found.candidate_id}
    assert [t.state.value for t in items] == ["finished"] * 4 + ["proposed"]
    kinds = [t.outcome.kind if t.outcome else None for t in items]
    assert kinds == ["measured", "measured", "rejected", "rejected", None]
    assert items[1].configuration == BEST
    reply = service.http.get(f"/v1/jobs/{job}/trials").json()
    assert reply["items"][2]["outcome"]["reason"].endswith(HOSTILE)


def test_candidates_come_with_their_provenance(service: Service) -> None:
    job = submit(service.http)
    with service.database.write() as session:
        searched(session, job)
    found = CandidateList.model_validate_json(service.http.get(f"/v1/jobs/{job}/candidates").content)
    (candidate,) = found.items
    assert (candidate.round, candidate.feasible, candidate.agent_step) == (1, 16, "step")
    assert candidate.applied[0].rule == "vector_width"
    assert candidate.declined == ("unroll: no loop",)
    assert candidate.space == scale_job().space
    assert candidate.source == scale_job().kernel.source


def test_the_result_of_a_job_that_is_done(service: Service) -> None:
    job = submit(service.http)
    with service.database.write() as session:
        found = ended(session, job)
    result = JobResult.model_validate_json(service.http.get(f"/v1/jobs/{job}/result").content)
    assert (result.state.value, result.device, result.driver) == ("done", DEVICE.name, DEVICE.driver)
    assert result.job == scale_job()
    assert result.speedup == pytest.approx(2**0.5)
    assert (result.trials_measured, result.trials_rejected, result.trials_per_second) == (2, 2, 2.0)
    ((rejection),) = result.rejections
    assert (rejection.stage, rejection.count, rejection.example) == (
        "correctness",
        2,
        {"BLOCK": 32, "PER": 8},
    )
    large, small = result.dispatch
    assert (large.workload, large.configuration, large.candidate) == (LARGE, BEST, found.candidate_id)
    assert (large.grid, large.block) == ((4, 1, 1), (256, 1, 1))
    assert large.source is not None
    assert large.source.startswith("#define BLOCK 256\n#define PER 4\n")
    assert (small.workload, small.configuration, small.source) == (SMALL, None, None)
    assert (small.grid, small.block) == ((16, 1, 1), (64, 1, 1))


def test_wrong_methods_are_refused_with_the_right_ones(http: httpx2.Client) -> None:
    for method, path, allowed in [
        ("PUT", "/v1/jobs/x", "GET"),
        ("DELETE", "/v1/jobs/x", "GET"),
        ("GET", "/v1/jobs/x/cancel", "POST"),
        ("POST", "/healthz", "GET"),
        ("POST", "/v1/workers", "GET"),
    ]:
        reply = http.request(method, path)
        assert problem_of(reply, 405).title == "Method Not Allowed"
        assert allowed in reply.headers["allow"].split(", ")


@pytest.mark.parametrize("path", ["/v2/jobs", "/v1/jobs/x/y", "/v1/jobs/x/trials/1", "/.env"])
def test_unknown_paths_are_problems_too(http: httpx2.Client, path: str) -> None:
    problem_of(http.get(path), 404)
