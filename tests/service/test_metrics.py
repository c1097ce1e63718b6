"""`GET /metrics` against what the database holds, and the form of the logs."""

import json
import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from api.app import create_app
from db.api_keys import new_key
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from testbed.api_service import service_settings
from testbed.rows import add_candidate, add_job, add_task, cut_short, measured, rejected
from warpsmith import logs
from warpsmith.domain.templates.outcome import Outcome
from warpsmith.domain.templates.space import Configuration
from warpsmith.settings import settings
from warpsmith.tuning.tasks import StepPayload, StepResult


def figures(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_count_what_there_is(tmp_path: Path, migrated_sqlite: str) -> None:
    app = create_app(service_settings(tmp_path, migrated_sqlite), with_worker=False, open_access=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        with app.state.database.write() as session:
            job = add_job(session)
            waiting, running = add_task(session, job.id), add_task(session, job.id)
            tasks = TaskRepository(session)
            assert tasks.claim(running.id, "w", -1) is not None
            tasks.expire(3)
            assert tasks.claim(running.id, "w", 10) is not None
            candidate = add_candidate(session, job.id)
            configurations: list[Configuration] = [{"BLOCK": b, "PER": 1} for b in (32, 64, 128, 256)]
            trials = TrialRepository(session)
            trials.propose(job.id, candidate.id, configurations)
            outcomes: list[Outcome] = [
                measured({"n=4096": 2.0}, 0.5),
                rejected("no"),
                cut_short({"n=1001": 2.0}, 3.0, "n=4096"),
            ]
            done = [TrialResult(c, o, 1.5) for c, o in zip(configurations[:3], outcomes, strict=True)]
            trials.finish(job.id, candidate.id, waiting.id, done)
            answer = StepResult(provider="openai", tokens=70, usd=0.25, latency_s=2.0)
            payload = StepPayload(role="planner", round=1)
            AgentStepRepository(session).add(job.id, waiting.id, payload, answer)
        reply = client.get("/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/plain")
    found = figures(reply.text)
    queue = (("queue", waiting.queue),)
    expected = {
        ("warpsmith_jobs", (("state", "queued"),)): 1,
        ("warpsmith_jobs", (("state", "done"),)): 0,
        ("warpsmith_queue_depth", queue): 1,
        ("warpsmith_tasks_running", queue): 1,
        ("warpsmith_task_attempts_lost_total", (("cause", "lease expired"),)): 1,
        ("warpsmith_trials_total", (("outcome", "measured"),)): 1,
        ("warpsmith_trials_total", (("outcome", "cut_short"),)): 1,
        ("warpsmith_trials_total", (("outcome", "rejected_correctness"),)): 1,
        ("warpsmith_trials_open", ()): 1,
        ("warpsmith_trial_seconds_total", ()): 4.5,
        ("warpsmith_workers_alive", ()): 0,
        ("warpsmith_agent_tokens_total", (("provider", "openai"), ("role", "planner"))): 70,
        ("warpsmith_agent_usd_total", (("provider", "openai"), ("role", "planner"))): 0.25,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert found["warpsmith_outbox_waiting", ()] >= 1


SECRETS = {
    "redis://user:hunter2secret@host/0": "hunter2secret",
    "postgresql+psycopg://warpsmith:pass-word@db:5432/x": "pass-word",
    f"key {new_key()[1]} was refused": "_" * 44,
    "Authorization: Bearer abcdefghij.klmno": "abcdefghij",
    "called with sk-proj-0123456789abcdef": "0123456789abcdef",
    "WARPSMITH_OPENAI_API_KEY=abc123def456": "abc123def456",
    "{'password': 'opensesame', 'user': 'me'}": "opensesame",
    "lease_token=01abc was refused": "01abc",
}


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_logged_nor_one_in_a_traceback(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    monkeypatch.setenv("WARPSMITH_LOG_FORMAT", form)
    settings.cache_clear()
    try:
        logs.configure()
        for text in SECRETS:
            logging.getLogger("worker.test").warning("plain %s", text)
            try:
                raise ValueError(text)
            except ValueError:
                logging.getLogger("worker.test").exception("failed")
    finally:
        root.handlers[:], root.level = before[0], before[1]
        settings.cache_clear()
    said = capsys.readouterr().err
    assert said.count("***") >= 2 * len(SECRETS)
    assert said.count("ValueError") >= len(SECRETS)
    for text, secret in SECRETS.items():
        assert text not in said
        assert secret not in said
    assert logs.without_secrets("12 tokens: 70, device pthread-AMD, job=01m7") == (
        "12 tokens: 70, device pthread-AMD, job=01m7"
    )


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_names_its_job_and_no_password(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    monkeypatch.setenv("WARPSMITH_LOG_FORMAT", form)
    settings.cache_clear()
    try:
        logs.configure()
        with logs.about(job="j1", task="t1"):
            logging.getLogger("worker.test").warning("lost %s", "redis://user:secret@host/0")
        logging.getLogger("worker.test").warning("nothing")
    finally:
        root.handlers[:], root.level = before[0], before[1]
        settings.cache_clear()
    first, second = capsys.readouterr().err.splitlines()
    assert "secret" not in first
    assert "j1" not in second
    if form == "json":
        event = json.loads(first)
        assert (event["job"], event["task"], event["level"]) == ("j1", "t1", "warning")
        assert event["event"] == "lost redis://user:***@host/0"
    else:
        assert first.endswith("warning worker.test: lost redis://user:***@host/0 job=j1 task=t1") or (
            "job=j1" in first and "task=t1" in first
        )
