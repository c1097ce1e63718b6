"""Steps that wait in the database, and its purse: real rows and decisions, fake device, messages by hand."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from agents.providers.model_budget import Cost
from db import migrate
from db.engine import Database, utc_now
from db.message_names import AGENT_QUEUE
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import AgentRequestRow, AgentStepRow, TaskRow
from db.views.result_views import job_result
from db.views.snapshot import elapsed_s
from testbed.api_service import service_settings, serving
from testbed.job_in_memory import Rows
from testbed.replay import replay
from tests.agents.replies import as_markdown, as_text, template
from tests.worker.setup_fakes import FakeSetup
from tests.worker.test_execute import SilentNotifier, handle_all, submit
from warpsmith.domain.jobs.job import RULES, AgentPolicy, Budget, Job
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.template import Template
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.client import Client
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import SlicePayload, StepPayload, StepResult
from worker.device.process_context import Context
from worker.task_runner import run_next
from worker.works.step_ports import JobPurse


def external_job() -> Job:
    """One round; the templater is asked outside."""
    agents = AgentPolicy(provider="rules", roles={"templater": "external"})
    return scale_job(budget={"trials": 6, "seconds": 600}).model_copy(update={"agents": agents})


@pytest.fixture
def worker(database: Database, tmp_path: Path) -> Context:
    """A worker over a fake device."""
    with database.write() as session:
        WorkerRepository(session).register("w", "host", 1, "0", ["control"], [DEVICE], {})
    url = database.engine.url.render_as_string(hide_password=False)
    settings = Settings(_env_file=None, data_dir=tmp_path, database_url=url, lease_s=5, renew_s=1)
    return Context(settings, database, SilentNotifier(), "w", FakeSetup())


def slices_of(session: Session, job_id: str) -> list[SlicePayload]:
    """What the slices of a job were given, in order."""
    return [t.payload for t in TaskRepository(session).of_job(job_id) if isinstance(t.payload, SlicePayload)]


def the_request(database: Database) -> AgentRequestRow:
    """The only request there is."""
    with database.read() as session:
        return session.scalars(select(AgentRequestRow)).one()


def the_step(session: Session) -> AgentStepRow:
    """The record of the templater that the job chose; the rules are asked for a rival after it."""
    asked = select(AgentStepRow).where(AgentStepRow.role == "templater")
    return session.scalars(asked.order_by(AgentStepRow.created_at, AgentStepRow.id)).all()[0]


def state_of(database: Database, job: str) -> JobState:
    with database.read() as session:
        return JobRepository(session).get(job).state


def test_a_step_is_deferred_until_its_answer_comes(worker: Context) -> None:
    database = worker.database
    job = submit(database, external_job())
    handle_all(worker)
    request = the_request(database)
    with database.write() as session:
        task = TaskRepository(session).get(request.task_id)
        assert (task.state, task.attempt, task.worker) == (TaskState.QUEUED, 0, "w")
        assert TaskRepository(session).notify_quiet(0.0) == [], "a deferred task is not lost"
        assert JobRepository(session).notify_idle(0.0) == []
        assert request.id in JobRepository(session).get(job).detail
    with database.write() as session:
        row = JobRepository(session).get(job)
        assert row.waiting_since is not None, "its budget does not pay for the wait"
        row.waiting_since -= timedelta(hours=3)
        assert row.started_at is not None
        row.started_at -= timedelta(hours=3)
        assert elapsed_s(session, row) < row.spec.budget.seconds
        requests = AgentRequestRepository(session)
        assert requests.answer(request.id, as_text(template()), "me")
        assert not requests.answer(request.id, as_text(template()), "you")
    handle_all(worker)
    assert state_of(database, job) is JobState.DONE
    with database.read() as session:
        step = the_step(session)
        assert (step.provider, step.model, step.fallback, step.calls) == ("external", "me", "", 0)
        ended = JobRepository(session).get(job)
        assert ended.waiting_since is None
        assert ended.waited_s >= timedelta(hours=3).total_seconds()
        assert elapsed_s(session, ended) < ended.spec.budget.seconds
        assert replay(session, job, {}).differences == ()


def test_a_deferred_step_is_notified_of_at_its_deadline_and_the_rules_answer(worker: Context) -> None:
    database = worker.database
    job = submit(database, external_job())
    handle_all(worker)
    request = the_request(database)
    past = utc_now() - timedelta(seconds=1)
    with database.write() as session:
        session.execute(update(AgentRequestRow).values(deadline=past))
        session.execute(update(TaskRow).where(TaskRow.id == request.task_id).values(notified_at=past))
        assert AgentRequestRepository(session).open() == []
        assert TaskRepository(session).notify_quiet(0.5) == [request.task_id]
    handle_all(worker)
    assert state_of(database, job) is JobState.DONE
    with database.write() as session:
        assert not AgentRequestRepository(session).answer(request.id, "{}", "late")
        step = the_step(session)
        assert step.fallback.startswith("external: no answer within")
        assert replay(session, job, {}).differences == ()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_requests_of_an_ended_job_are_closed(worker: Context) -> None:
    job = submit(worker.database, external_job())
    handle_all(worker)
    with worker.database.write() as session:
        assert [r.job_id for r in AgentRequestRepository(session).open()] == [job]
        JobRepository(session).cancel(job)
    with worker.database.read() as session:
        requests = AgentRequestRepository(session)
        assert requests.open() == []
        assert not requests.is_open(the_request(worker.database))
        assert replay(session, job, {}).differences == ()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_replay_sees_a_record_that_was_changed(worker: Context) -> None:
    job = submit(worker.database, external_job())
    handle_all(worker)
    with worker.database.write() as session:
        requests = AgentRequestRepository(session)
        requests.answer(the_request(worker.database).id, as_text(template()), "me")
    handle_all(worker)
    other = as_text(template(parameters=[{"name": "CHUNK", "values": [1, 2], "default": 1}]))
    with worker.database.write() as session:
        session.execute(update(AgentStepRow).values(reply=other))
    with worker.database.read() as session:
        found = replay(session, job, {})
    assert found.candidates == 0
    assert "question: recorded StepPayload(" in found.differences[0]
    assert "role='tuner'" in found.differences[0]


def test_the_purse_never_gives_more_than_the_budget(database: Database) -> None:
    job = submit(database, scale_job(budget={"tokens": 500, "usd": 1.0}))
    purses = [JobPurse(database, job) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda purse: purse.reserve(Cost(100, 0.15)), purses))
    assert sum(given) == 5
    assert purses[0].left().tokens == 0
    assert not purses[0].reserve(Cost(1, 0.0))
    holder = purses[given.index(True)]
    holder.settle(Cost(100, 0.15), Cost(30, 0.05))
    assert holder.booked.tokens == 30
    assert holder.booked.usd == pytest.approx(0.05)
    assert holder.left().tokens == 70
    assert not holder.reserve(Cost(10, 0.9)), "USD are a limit too"
    assert holder.reserve(Cost(70, 0.0))
    with database.write() as session:
        JobRepository(session).cancel(job)
    assert not JobPurse(database, job).reserve(Cost(0, 0.0)), "an ended job spends nothing"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_bad_answer_gets_its_reason_and_the_request_stays_open(worker: Context, tmp_path: Path) -> None:
    submit(worker.database, external_job())
    handle_all(worker)
    request = the_request(worker.database)
    url = worker.settings.database_url
    migrate.require_current(str(url))
    with serving(service_settings(tmp_path / "api", url)) as service:
        path = f"/v1/agent-requests/{request.id}/reply"
        bad: dict[str, str] = {
            "rules": "fill exactly one of rules, source and draft",
            "nonsense": "nonsense: no such field",
            "lone": "not valid Unicode",
        }
        bodies: dict[str, dict[str, object]] = {
            "rules": {"rules": []},
            "nonsense": {"nonsense": 1},
            "lone": {"source": "\ud800"},
        }
        for name, words in bad.items():
            reply = post(service.http, path, bodies[name])
            assert reply.status_code == 422
            assert words in reply.json()["errors"][0]["message"]
        (shown,) = service.http.get("/v1/agent-requests").json()["items"]
        assert shown["refusals"] == 3
        assert "not valid Unicode" in shown["last_refusal"]
        assert post(service.http, "/v1/agent-requests/nothing/reply", {}).status_code == 404
        assert service.http.get("/v1/agent-requests?job=other").json()["items"] == []
        assert service.http.get("/v1/jobs/nothing/agent-steps").status_code == 404
        assert post(service.http, path, template()).status_code == 200
        assert post(service.http, path, template()).status_code == 409


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_question_is_answered_through_a_client(worker: Context, tmp_path: Path) -> None:
    job = submit(worker.database, external_job())
    handle_all(worker)
    settings = service_settings(tmp_path / "api", worker.settings.database_url)
    with serving(settings) as service, Client(str(service.http.base_url), service.key) as client:
        assert list(client.agent_requests("other")) == []
        (question,) = client.agent_requests(job)
        assert [q.id for q in client.agent_requests()] == [question.id]
        assert (question.job, question.role) == (job, "templater")
        with pytest.raises(InvalidInput, match=r"answer: .*fill exactly one of rules, source and draft"):
            client.reply(question.id, {"rules": []})
        with pytest.raises(InvalidInput, match="answer: the reply ends within its fenced source"):
            client.reply(question.id, "```opencl\nint x;\n")
        taken = client.reply(question.id, as_markdown(template()), "a program")
        assert (taken.id, taken.job) == (question.id, job)
        assert list(client.agent_requests(job)) == []
        # The API has sent its message already, for whoever listens.
        assert run_next(worker, AGENT_QUEUE)
        step = next(s for s in client.agent_steps(job).items if s.provider == "external")
        assert (step.role, step.model) == ("templater", "a program")


def post(http: httpx2.Client, path: str, answer: dict[str, object]) -> httpx2.Response:
    """Answer a request."""
    body = json.dumps({"answer": answer, "by": "a test"})
    return http.post(path, content=body, headers={"Content-Type": "application/json"})


REFUSED = DeclinedRule(rule="a", code=DeclineCode.FORM, reason="b")


def test_a_tuner_is_asked_between_the_template_and_its_search() -> None:
    def step(rows: Rows, payload: StepPayload) -> StepResult:
        made = Template(kernel=rows.snapshot.job.kernel)
        if payload.role in ("tester", "profiler", "planner"):
            return StepResult(provider=RULES)
        if payload.role == "templater":
            return StepResult(provider=RULES, template=made, declined=(REFUSED,), ask_tuner=True)
        assert (payload.role, payload.draft, payload.declined) == ("tuner", made, (REFUSED,))
        return StepResult(provider=RULES, template=made, declined=payload.declined)

    rows = Rows(Budget(rounds=1, trials=5), agent_step=step)
    end = rows.run()
    assert end.state is JobState.DONE
    assert rows.kinds == ["baseline", *["agent_step"] * 5, "slice", "verify"]
    (candidate,) = end.candidates
    tuner = [t for t in end.tasks if t.kind is TaskKind.AGENT_STEP][-1]
    assert candidate.made_by == tuner.id


def test_an_agent_that_brings_nothing_ends_the_search_and_not_the_service() -> None:
    rows = Rows(Budget(rounds=3), agent_step=lambda r, p: StepResult(provider="x"))
    assert rows.run().state is JobState.FAILED
    assert rows.kinds == ["baseline", *["agent_step"] * 4]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("parents", [1, 2])
def test_a_job_that_branches_and_searches_on_is_replayed(worker: Context, parents: int) -> None:
    """The best candidate gets trials after its planner was asked, which a replay must not see too early."""
    budget = {"trials": 14, "seconds": 600, "rounds": 3}
    job = scale_job(
        budget=budget, rewrite={"enabled": False}, agents={"provider": "rules", "parents": parents}
    )
    name = submit(worker.database, job)
    handle_all(worker)
    assert state_of(worker.database, name) is JobState.DONE
    with worker.database.read() as session:
        searched = [s.candidate for s in slices_of(session, name)]
        assert searched.count(searched[0]) > 1
        assert JobRepository(session).get(name).trials_done == 14
        found = replay(session, name, {})
        shown = job_result(session, name)
    assert found.differences == ()
    assert found.candidates >= 1
    assert shown is not None and shown.facts is not None and shown.facts.best is not None
    assert {e.parameter for e in shown.facts.effects} == {"BLOCK", "PER"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_search_on_several_devices_is_replayed(worker: Context) -> None:
    devices = [DEVICE.model_copy(update={"uid": f"test-{n}", "index": n}) for n in (1, 2)]
    with worker.database.write() as session:
        WorkerRepository(session).register("v", "other", 1, "0", ["control"], devices, {})
    job = scale_job(budget={"trials": 14, "seconds": 600, "rounds": 2}, rewrite={"enabled": False})
    name = submit(worker.database, job)
    handle_all(worker)
    with worker.database.read() as session:
        assert sum(s.shared for s in slices_of(session, name)) >= 3, "no slice ran beside another"
        assert replay(session, name, {}).differences == ()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_job_that_knows_what_others_found_is_replayed(worker: Context) -> None:
    """The second job takes over a best trial that it has no budget to find; its rounds start from there."""
    found = []
    for trials in (16, 4):
        job = scale_job(budget={"trials": trials, "seconds": 600, "rounds": 2}, rewrite={"enabled": False})
        name = submit(worker.database, job)
        handle_all(worker)
        with worker.database.read() as session:
            rows = [
                t
                for c in CandidateRepository(session).of_job(name)
                for t in TrialRepository(session).finished(c.id)
            ]
            found.append(sum(t.reused for t in rows))
            assert replay(session, name, {}).differences == ()
    assert found[1] > 0, "nothing was taken over"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_agents_that_only_rewrite_are_asked_outside_and_measured_once_a_round(worker: Context) -> None:
    changes = {"agents": {"provider": "rules", "roles": {"templater": "external"}}, "strategy": "direct"}
    name = submit(worker.database, scale_job(budget={"trials": 9, "seconds": 600}, **changes))
    handle_all(worker)
    request = the_request(worker.database)
    assert "Rewrite the kernel" in request.instructions
    plain = template(template()["source"].replace("CHUNK", "2"), parameters=[], constraints=[])
    with worker.database.write() as session:
        assert AgentRequestRepository(session).answer(request.id, as_text(plain), "me")
    handle_all(worker)
    with worker.database.read() as session:
        row = JobRepository(session).get(name)
        assert (row.state, row.trials_done) == (JobState.DONE, 1)
        assert the_step(session).fallback == ""
        assert replay(session, name, {}).differences == ()
