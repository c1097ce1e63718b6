"""Cancelling ends a job once; a job that has ended stays as it is."""

import httpx2

from db.repositories.tasks import TaskRepository
from testbed.api_service import Service
from testbed.stages import ended, searched
from tests.api.test_bad_input import problem_of
from tests.api.test_read import submit
from warpsmith.domain.state import TaskKind, TaskState


def test_a_waiting_job_is_cancelled(http: httpx2.Client) -> None:
    job = submit(http)
    reply = http.post(f"/v1/jobs/{job}/cancel")
    assert reply.status_code == 200
    status = reply.json()
    assert (status["state"], status["detail"]) == ("cancelled", "cancelled on request")
    assert status["finished_at"] is not None
    assert http.get(f"/v1/jobs/{job}").json() == status


def test_cancelling_twice_changes_nothing(http: httpx2.Client) -> None:
    job = submit(http)
    first = http.post(f"/v1/jobs/{job}/cancel")
    second = http.post(f"/v1/jobs/{job}/cancel")
    assert second.status_code == 200
    assert second.json() == first.json()


def test_a_job_that_is_done_stays_done(service: Service) -> None:
    job = submit(service.http)
    with service.database.write() as session:
        ended(session, job)
    before = service.http.get(f"/v1/jobs/{job}").json()
    reply = service.http.post(f"/v1/jobs/{job}/cancel")
    assert (reply.status_code, reply.json()) == (200, before)
    assert before["state"] == "done"


def test_cancelling_takes_open_tasks_along_and_leaves_the_evidence(service: Service) -> None:
    job = submit(service.http)
    with service.database.write() as session:
        searched(session, job)
        open_task = TaskRepository(session).enqueue(job, TaskKind.SLICE, "gpu.test", None).id
    assert service.http.post(f"/v1/jobs/{job}/cancel").json()["state"] == "cancelled"
    with service.database.read() as session:
        assert TaskRepository(session).get(open_task).state is TaskState.CANCELLED
    result = service.http.get(f"/v1/jobs/{job}/result").json()
    assert (result["state"], result["speedup"], result["dispatch"]) == ("cancelled", None, [])
    assert (result["trials_measured"], result["trials_rejected"]) == (2, 2)


def test_a_job_cancelled_before_it_began_has_a_result_that_says_so(http: httpx2.Client) -> None:
    job = submit(http)
    http.post(f"/v1/jobs/{job}/cancel")
    result = http.get(f"/v1/jobs/{job}/result").json()
    assert (result["state"], result["detail"]) == ("cancelled", "cancelled on request")
    assert (result["device"], result["seconds"], result["candidates"]) == ("", 0.0, [])


def test_an_unknown_job_cannot_be_cancelled(http: httpx2.Client) -> None:
    problem_of(http.post("/v1/jobs/nope/cancel"), 404)
    problem_of(http.post("/v1/jobs/%00/cancel"), 422)
