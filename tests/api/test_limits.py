"""Rates, budgets and the length of the queue: what is too much is refused, with the time to come back."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from db.engine import utc_now
from db.repositories.jobs import JobRepository
from testbed.api_service import Service, service_settings, serving
from tests.api.jobs import body
from tests.api.test_bad_input import problem_of
from warpsmith.domain.state import JobState


def submit(http: httpx2.Client, **budget: Any) -> httpx2.Response:
    return http.post("/v1/jobs", json=body(budget={"trials": 1, "seconds": 60, **budget}))


def refused(reply: httpx2.Response, words: str, status: int = 429) -> int:
    """The seconds after which to come back."""
    assert words in problem_of(reply, status).detail
    return int(reply.headers["retry-after"])


def test_requests_of_a_key_come_at_its_rate(service: Service) -> None:
    with (
        service.client(service.new_key(requests_per_s=2)) as slow,
        service.client(service.new_key()) as other,
    ):
        replies = [slow.get("/v1/jobs") for _ in range(12)]
        statuses = [r.status_code for r in replies]
        assert statuses[:4] == [200] * 4
        assert statuses.count(429) >= 6
        last = next(r for r in reversed(replies) if r.status_code == 429)
        assert refused(last, "at most 2 a second") == 1
        assert other.get("/v1/jobs").status_code == 200


def test_a_key_submits_so_many_jobs_a_minute(service: Service) -> None:
    with service.client(service.new_key(submits_per_minute=3)) as http:
        assert [submit(http).status_code for _ in range(3)] == [202] * 3
        assert refused(submit(http), "3 jobs a minute") == 20
        assert http.get("/v1/jobs").status_code == 200


def test_a_key_has_so_many_open_jobs_and_gets_a_place_when_one_ends(service: Service) -> None:
    with service.client(service.new_key(open_jobs=2)) as http:
        first, second = submit(http), submit(http)
        assert (first.status_code, second.status_code) == (202, 202)
        assert refused(submit(http), "2 open jobs") == 30
        assert http.post(f"{first.headers['location']}/cancel").status_code == 200
        assert submit(http).status_code == 202


def test_a_repeated_submission_needs_no_place(service: Service, key: str) -> None:
    with service.client(service.new_key(open_jobs=1)) as http:
        job, header = body(), {"Idempotency-Key": key}
        replies = [http.post("/v1/jobs", json=job, headers=header) for _ in range(2)]
        assert [r.status_code for r in replies] == [202, 202]
        assert replies[0].json()["id"] == replies[1].json()["id"]


def test_seconds_that_were_granted_count_until_they_are_given_back(service: Service) -> None:
    with service.client(service.new_key(device_s_per_day=100)) as http:
        first = submit(http, seconds=70)
        assert first.status_code == 202
        assert refused(submit(http, seconds=31), "30 s are left") == 3600
        assert submit(http, seconds=30).status_code == 202
        with service.database.write() as session:
            jobs, job_id = JobRepository(session), first.json()["id"]
            jobs.get(job_id).started_at = utc_now()
            jobs.move(job_id, JobState.QUEUED, JobState.FAILED, "at once")
        assert submit(http, seconds=60).status_code == 202
        refused(submit(http, seconds=60), "s are left")


def test_a_job_that_took_longer_than_it_may_counts_with_what_it_took(service: Service) -> None:
    with service.client(service.new_key(device_s_per_day=100)) as http:
        first = submit(http, seconds=1)
        with service.database.write() as session:
            row = JobRepository(session).get(first.json()["id"])
            row.started_at, row.waited_s = utc_now() - timedelta(seconds=90), 10.0
        assert submit(http, seconds=30).status_code == 429, "while it is open"
        with service.database.write() as session:
            JobRepository(session).cancel(first.json()["id"])
        assert submit(http, seconds=30).status_code == 429, "and when it has ended"
        assert submit(http, seconds=15).status_code == 202


def test_money_for_models_is_granted_in_the_same_way(service: Service) -> None:
    with service.client(service.new_key(usd_per_day=2)) as http:
        first = submit(http, usd=1.5)
        assert first.status_code == 202
        refused(submit(http, usd=0.6), "0.50 are left")
        with service.database.write() as session:
            jobs, job_id = JobRepository(session), first.json()["id"]
            jobs.spend(job_id, 10, 0.25)
            jobs.move(job_id, JobState.QUEUED, JobState.FAILED, "at once")
        assert submit(http, usd=1.7).status_code == 202
        assert refused(submit(http, usd=0.1), "0.05 are left") == 3600


def test_limits_of_one_key_are_not_those_of_another(service: Service) -> None:
    with (
        service.client(service.new_key(open_jobs=1)) as one,
        service.client(service.new_key(open_jobs=1)) as other,
    ):
        assert [submit(one).status_code, submit(one).status_code] == [202, 429]
        assert submit(other).status_code == 202


def test_a_full_queue_refuses_everybody_for_a_while(tmp_path: Path) -> None:
    settings = service_settings(tmp_path, max_open_jobs=2, key_open_jobs=2)
    with serving(settings) as service, service.client(service.new_key(tenant="other")) as other:
        first = submit(service.http)
        assert submit(other).status_code == 202
        assert refused(submit(other), "2 jobs are open", 503) == 30
        assert refused(submit(service.http), "2 jobs are open", 503) == 30
        service.http.post(f"{first.headers['location']}/cancel")
        assert submit(other).status_code == 202


def test_limits_of_the_settings_hold_where_a_key_has_none(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path, key_submits_per_minute=2)) as service:
        assert [submit(service.http).status_code for _ in range(3)] == [202, 202, 429]
        with service.client(service.new_key(submits_per_minute=3)) as http:
            assert [submit(http).status_code for _ in range(4)] == [202, 202, 202, 429]


def test_many_clients_at_once_do_not_wait_for_each_other_for_ever(service: Service) -> None:
    """More clients than threads and connections; a pool that is waited for in vain gives up after 30 s."""
    job = submit(service.http).headers["location"]
    clients = 60

    def ask(http: httpx2.Client) -> set[int]:
        return {http.get(job).status_code for _ in range(5)}

    with ExitStack() as stack:
        asking = [stack.enter_context(service.client(service.key)) for _ in range(clients)]
        pool = stack.enter_context(ThreadPoolExecutor(clients))
        assert set().union(*pool.map(ask, asking)) == {200}
