"""Whole jobs on a real device (PoCL): a faulty model, and answers over the API through a restart."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy.orm import Session

from db import migrate
from db.engine import Database
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.workers import WorkerRepository
from db.views import result_views
from db.views.job_status import job_status
from testbed.deadlines import comes_true, stretched
from testbed.plain_http import NO_TLS
from testbed.replay import replay
from testbed.service import ROOT, Service, ended
from tests.agents.conftest import KEY, settings_of
from tests.agents.model_server import Body, Turn, model_server
from tests.agents.replies import BROKEN_SOURCE, CHEAT, WRONG_SOURCE, as_markdown, as_text, template
from tests.worker.test_execute import SilentNotifier, handle_all, submit
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.sandbox import probe_devices
from warpsmith.testing.jobs import scale_job
from worker.device.device_setup import RealDeviceSetup
from worker.device.process_context import Context

pytestmark = pytest.mark.slow
TOKENS = 150_000
WARM = {"CHUNK": 2, "BLOCK": 128, "PER": 1}
CHEATING = {"SKIP": 8, "BLOCK": 128, "PER": 1}


def agent_job(**changes: Any) -> dict[str, Any]:
    """`scale_job` on one workload, with agents."""
    job = scale_job().model_dump(mode="json", exclude_unset=True)
    job["workloads"] = [{"dimensions": {"n": 65536}}]
    job["budget"] = {"rounds": 3, "trials": 9, "seconds": 600}
    return job | changes


TESTS = {
    "shapes": [{"dimensions": [{"name": "n", "extent": 129}], "reason": "one more than two blocks"}],
    "families": [{"workload": "n=65536", "family": "spike", "reason": "one large value"}],
}
PROFILE = {"bottleneck": "latency", "hypotheses": ["more elements for a thread"]}


def region(configuration: dict[str, int], *constraints: str) -> dict[str, Any]:
    """A tuner's answer."""
    values = [{"name": name, "value": value} for name, value in configuration.items()]
    return {"constraints": [{"expression": c} for c in constraints], "warm_starts": [values]}


class FaultyModel:
    """Makes every mistake there is, then does what is asked. Roles are told apart by their system prompt."""

    def __init__(self) -> None:
        self._turns: dict[str, list[Turn]] = {
            "tester": [Turn(as_text(TESTS))],
            "profiler": [Turn(as_text(PROFILE))],
            "templater": [
                Turn(status=429, headers={"Retry-After": "0"}),
                Turn(status=500),
                Turn("Let me think about it."),
                Turn('{"source": "__kernel void', finish="length"),
                Turn(as_text(template(BROKEN_SOURCE))),
                Turn(as_text(CHEAT)),
            ],
            "repairer": [
                Turn(as_text(template(WRONG_SOURCE))),
                Turn("```json\n" + json.dumps(template())[:-1] + ",}\n```"),
            ],
            "planner": [
                Turn('{"plan": "more elements for a thread"}'),
                Turn('{"plan": "late"}', delay_s=1.5),
                Turn('{"idea": "wrong schema"}'),
                Turn('{"plan": "skip work that nobody looks at"}'),
                Turn('{"stop": "nothing more to gain"}'),
            ],
        }

    def __call__(self, body: Body, number: int) -> Turn:
        role = body["messages"][0]["content"].split("You are the ")[1].split()[0]
        if role == "tuner":
            skips = "SKIP" in body["messages"][1]["content"]
            # Few trials are left for the cheat, so it is asked for by name.
            return Turn(as_text(region(CHEATING) if skips else region(WARM, "CHUNK <= 4")))
        turns = self._turns[role]
        return turns[0] if role == "profiler" else turns.pop(0)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The embedded service, whose questions all go outside."""
    started = Service(tmp_path / "data", {"WARPSMITH_AGENT_PROVIDER": "external"}).start()
    yield started
    started.stop()


def replay_by_command(service: Service, job: str) -> str:
    """What `python -m testbed.replay` says; it must find no difference."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    environment["WARPSMITH_DATA_DIR"] = str(service.data_dir)
    done = subprocess.run(
        [sys.executable, "-m", "testbed.replay", job],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_job_survives_a_faulty_model_within_its_budget(tmp_path: Path) -> None:
    """In this process, which handles its messages; compilers and kernels run in their own, as ever."""
    url = f"sqlite:///{tmp_path / 'test.db'}"
    migrate.upgrade(url)
    database = Database(url)
    job = agent_job(agents={"provider": "openai"})
    job["budget"] |= {"tokens": TOKENS, "usd": 0.2, "trials": 18}
    job["rewrite"] = {"enabled": False}  # no rival: this is about the model alone
    try:
        with model_server(FaultyModel()) as server:
            settings = settings_of(server.url, data_dir=tmp_path, database_url=url, openai_timeout_s=1)
            (device,) = (d for d in probe_devices().devices if d.backend is Backend.OPENCL)
            with database.write() as session:
                WorkerRepository(session).register("w", "host", 1, "0", ["control"], [device], {})
            setup = RealDeviceSetup(settings, device)
            name = submit(database, Job.model_validate(job))
            try:
                handle_all(Context(settings, database, SilentNotifier(), "w", setup))
            finally:
                setup.close()
            billed = server.billed_tokens
        with database.read() as session:
            check_faulty_job(session, name, billed)
    finally:
        database.dispose()


def check_faulty_job(session: Session, job: str, billed: int) -> None:
    """What the job of `FaultyModel` must have come to."""
    status = job_status(session, job)
    assert status.state is JobState.DONE, status.detail
    steps = AgentStepRepository(session).of_job(job)
    assert [s.role for s in steps] == [
        *("tester", "profiler", "planner", "templater", "tuner", "repairer", "tuner", "repairer", "tuner"),
        *("profiler", "planner", "templater", "tuner", "profiler", "planner"),
    ]
    assert [s.fallback for s in steps if s.fallback] == []
    assert [s.calls for s in steps if s.role == "templater"] == [5, 1]
    notes = "\n".join(s.notes for s in steps)
    assert all(words in notes for words in ("HTTP 429", "HTTP 500", "no reply within 1 s", "no such field"))
    assert status.tokens_used == sum(s.tokens for s in steps)
    assert billed <= status.tokens_used <= TOKENS
    assert 0 < status.usd_used <= 0.2
    assert status.usd_used == pytest.approx(sum(s.usd for s in steps))
    assert KEY not in "".join(s.prompt + s.reply + s.notes for s in steps)

    candidates = result_views.candidate_list(session, job).items
    assert [c.state.value for c in candidates] == ["rejected", "rejected", "searched", "searched"]
    trials = result_views.trial_page(session, job, limit=1000).items
    assert WARM in [t.configuration for t in trials]
    skipped = [t.outcome for t in trials if t.configuration.get("SKIP")]
    told = [(t.configuration, t.state, t.outcome.kind if t.outcome else None) for t in trials]
    assert all(isinstance(o, Rejected) for o in skipped), f"a cheat was believed: {told}"
    assert skipped, f"no cheat was tried: {told}"
    result = result_views.job_result(session, job)
    assert result is not None
    assert not [e for e in result.dispatch if e.configuration and e.configuration.get("SKIP")]
    replayed = replay(session, job, {})
    assert (replayed.candidates, replayed.steps, replayed.differences) == (4, 15, ())


class Answerer(threading.Thread):
    """A client program of its own: polls for requests and answers each, badly first."""

    def __init__(self, url: str, answers: list[Any]) -> None:
        super().__init__(name="answerer")
        self._url = url
        self._answers = answers
        self.seen: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        """Answer until told to stop."""
        with httpx2.Client(base_url=self._url, timeout=10, verify=NO_TLS) as http:
            while not self.stop.wait(0.05):
                try:
                    for request in http.get("/v1/agent-requests").json()["items"]:
                        self._answer(http, request)
                except httpx2.HTTPError:
                    continue

    def _answer(self, http: httpx2.Client, request: dict[str, Any]) -> None:
        path = f"/v1/agent-requests/{request['id']}/reply"
        self.seen.append(request)
        bad = http.post(path, json={"answer": {"nonsense": 1}})
        assert bad.status_code == 422, bad.text
        self.refusals.append(bad.json()["errors"][0]["message"])
        good = http.post(path, json={"answer": self._answers.pop(0), "by": "the test"})
        assert good.status_code == 200, good.text
        assert http.post(path, json={"answer": {"rules": []}}).status_code == 409


def answered(service: Service, job: str, answers: list[Any]) -> tuple[Answerer, dict[str, Any]]:
    """A job's client and its status, once the client has answered every question and the job is done."""
    client = Answerer(service.url, answers)
    client.start()
    try:
        status: dict[str, Any] = service.wait(job, ended)
    finally:
        client.stop.set()
        client.join()
    assert status["state"] == "done", status["detail"] + service.logs()
    return client, status


def test_a_job_whose_every_step_is_answered_from_outside(service: Service) -> None:
    name = service.submit(agent_job(budget={"rounds": 3, "trials": 15, "seconds": 600}))
    assert comes_true(lambda: service.get("/v1/agent-requests")["items"], 40, 0.1), service.logs()
    (request,) = service.get("/v1/agent-requests")["items"]
    assert (request["job"], request["role"]) == (name, "tester")
    assert request["wanted"]["properties"]["shapes"]["type"] == "array"
    service.stop()
    service.start()
    (again,) = service.get("/v1/agent-requests")["items"]
    assert again == request, "the request did not survive the restart"

    plan = {"plan": "let the rules do it", "expected_gain": 1.2}
    first: list[Any] = [TESTS, PROFILE, plan, as_markdown(template()), region(WARM, "CHUNK <= 4")]
    answers = [*first, PROFILE, plan, {"rules": ["unroll", "restrict"]}, {}, PROFILE, {"stop": "enough"}]
    client, status = answered(service, name, answers)
    assert [r["role"] for r in client.seen] == [
        *("tester", "profiler", "planner", "templater", "tuner"),
        *("profiler", "planner", "templater", "tuner", "profiler", "planner"),
    ]
    later = client.seen[7]["question"]
    assert (later["plan"], later["profile"]["bottleneck"]) == (plan["plan"], "latency")
    assert later["facts"]["best"]["workloads"][0]["bytes_per_s"] > 0
    assert "nonsense: no such field" in client.refusals[0]
    steps = service.get(f"/v1/jobs/{name}/agent-steps")["items"]
    outside = {(s["provider"], s["model"], s["fallback"]) for s in steps if s["provider"] != "rules"}
    assert outside == {("external", "the test", "")}
    assert [s["role"] for s in steps if s["provider"] == "rules"][:1] == ["templater"], "the rival"
    assert status["tokens_used"] == 0
    assert "3 candidates reached again; 13 agent steps" in replay_by_command(service, name)


def test_an_agent_uses_tools_before_it_answers(service: Service) -> None:
    fast = [{"name": name, "value": value} for name, value in WARM.items()]
    wanted = [
        {"tool": "compile", "template": template(BROKEN_SOURCE)},
        {"tool": "check", "template": template(WRONG_SOURCE)},
        {"tool": "check", "template": template()},
        {"tool": "time", "draft": "d2", "configurations": [fast]},
        {"tool": "profile", "draft": "d2"},
    ]
    answers: list[Any] = [TESTS, PROFILE, {"plan": "more work for a thread"}]
    answers += [{"calls": wanted}, {"calls": [{"tool": "history"}]}, {"draft": "d2", "warm_starts": [fast]}]
    answers += [region(WARM)]
    job = agent_job(agents={"tools": 6}, budget={"rounds": 1, "trials": 2, "seconds": 600})
    name = service.submit(job)
    client, _ = answered(service, name, answers)
    assert [r["role"] for r in client.seen] == ["tester", "profiler", "planner", *["templater"] * 3, "tuner"]
    last = client.seen[5]["question"]
    assert last["tools"] == 0
    said = last["calls"]
    assert [(c["tool"], c["draft"], c["ok"]) for c in said] == [
        ("compile", "d0", False),
        ("check", "d1", False),
        ("check", "d2", True),
        ("time", "d2", True),
        ("profile", "d2", True),
        ("history", "", True),
    ]
    broken, wrong, right, timed, profiled, tried = (c["answer"] for c in said)
    assert "undeclared" in broken
    assert "wrong on" in wrong and "correctness: on n=65536: y is wrong" in wrong
    assert "right on all" in right
    assert "n=65536: " in timed and " µs against " in timed
    assert "bound by: " in profiled
    assert tried == "nothing was tried in this job yet"
    assert last["drafts"].keys() == {"d0", "d1", "d2"}
    candidates = service.get(f"/v1/jobs/{name}/candidates")["items"]
    assert candidates[0]["source"] == template()["source"]
    trials = service.get(f"/v1/jobs/{name}/trials")["items"]
    assert WARM in [t["configuration"] for t in trials]
    assert "candidates reached again" in replay_by_command(service, name)


def test_ideas_of_a_round_have_templates_of_their_own(service: Service) -> None:
    ideas = [
        {"name": "Wide loads", "sentence": "moves more at once", "plan": "more elements for a thread"},
        {"name": "unrolled", "sentence": "loops less", "plan": "unroll it", "expected_gain": 1.2},
    ]
    answers: list[Any] = [TESTS, PROFILE, {"ideas": ideas}, template(), region(WARM)]
    answers += [{"rules": ["unroll", "restrict"]}, {}]
    job = agent_job(agents={"ideas": 2}, budget={"rounds": 1, "trials": 28, "seconds": 600})
    name = service.submit(job)
    client, _ = answered(service, name, answers)
    assert [r["role"] for r in client.seen] == [
        *("tester", "profiler", "planner", "templater", "tuner", "templater", "tuner")
    ]
    asked = client.seen[2]
    assert (asked["question"]["ideas"], asked["question"]["tried"]) == (
        2,
        "nothing was tried in this job yet",
    )
    assert client.seen[5]["question"]["plan"] == "unrolled: loops less\nunroll it"
    candidates = service.get(f"/v1/jobs/{name}/candidates")["items"]
    assert [c["idea"] for c in candidates] == ["wide loads", "unrolled", ""]
    result = service.get(f"/v1/jobs/{name}/result")
    assert [c["idea"] for c in result["candidates"]] == ["wide loads", "unrolled", ""]
    assert "3 candidates reached again" in replay_by_command(service, name)
