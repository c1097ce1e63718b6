"""A job whose kernels are profiled: PoCL, and a program that stands in for Nsight Compute."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.context import StepContext
from agents.questions.role_inputs import question
from db.engine import Database
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.views.result_views import job_result
from db.views.snapshot import job_baseline
from db.views.step_facts import step_facts
from testbed.replay import replay
from tests.sandbox.ncu_stand_in import ncu
from tests.worker.test_execute import SilentNotifier, handle_all, submit
from warpsmith.domain.device import Backend
from warpsmith.domain.state import JobState, TaskKind
from warpsmith.sandbox import ChildOpener, probe_devices
from warpsmith.sandbox.hosts.ncu_host import NsightCompute
from warpsmith.settings import Settings
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.tasks import StepPayload, StepResult
from worker.device.device_setup import RealDeviceSetup
from worker.device.process_context import Context

pytestmark = pytest.mark.slow
VALUES = {"dram_bytes": 1179648.0, "dram_percent": 85.27, "l2_hit_percent": 33.06, "sm_percent": 21.5}


@pytest.fixture
def context(database: Database, tmp_path: Path) -> Iterator[Context]:
    """A worker on PoCL; its profiler is put in by the test."""
    (device,) = (d for d in probe_devices().devices if d.backend is Backend.OPENCL)
    with database.write() as session:
        WorkerRepository(session).register("w", "host", 1, "0", ["control"], [device], {})
    url = database.engine.url.render_as_string(hide_password=False)
    settings = Settings(_env_file=None, data_dir=tmp_path, database_url=url, reuse_trials_s=0)
    setup = RealDeviceSetup(settings, device)
    yield Context(settings, database, SilentNotifier(), "w", setup)
    setup.close()


def run(context: Context, program: Path) -> str:
    """A job of two rounds, profiled by this program; its id."""
    setup = context.device_setup()
    info = setup.ports.opener.info
    setup.ports = replace(setup.ports, counters=NsightCompute(ChildOpener(info), program))
    job = scale_job(
        workloads=[{"dimensions": {"n": 65536}}],
        budget={"trials": 6, "seconds": 300, "rounds": 2},
        rewrite={"enabled": False},
        parameters=[
            {"name": "BLOCK", "values": [32, 64, 128]},
            {"name": "PER", "values": [1]},
        ],
    )
    name = submit(context.database, job)
    handle_all(context)
    with context.database.read() as session:
        row = JobRepository(session).get(name)
        assert row.state is JobState.DONE, row.detail
        assert replay(session, name, {}).differences == ()
        measured = job_baseline(session, name)
        assert measured is not None
        assert measured.seconds > 0
    return name


def profiler_steps(context: Context, job: str) -> list[tuple[StepPayload, StepContext, str]]:
    """Question, knowledge and notes of every profiler step, in order."""
    found = []
    with context.database.read() as session:
        notes = {s.task_id: s.notes for s in AgentStepRepository(session).of_job(job)}
        for task in TaskRepository(session).of_job(job):
            payload = task.payload
            if isinstance(payload, StepPayload) and payload.role == "profiler":
                facts = step_facts(session, job, payload, before=task.number)
                found.append((payload, StepContext.of(facts, {}), str(notes[task.id])))
    return found


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_counters_of_baseline_and_winner_reach_the_step_and_the_result(
    context: Context, tmp_path: Path
) -> None:
    job = run(context, ncu(tmp_path, "counts"))
    steps = profiler_steps(context, job)
    assert [p.round for p, _, _ in steps] == [1, 2]
    shown = [question(p, c).model_dump()["facts"] for p, c, _ in steps]
    assert all(facts["baseline"]["counters"] == VALUES for facts in shown)
    assert [facts["best"] and facts["best"]["counters"] for facts in shown] == [None, VALUES]
    with context.database.read() as session:
        result = job_result(session, job)
        profiled = [t for t in TaskRepository(session).of_job(job) if t.kind is TaskKind.PROFILE]
        results = [t.result for t in TaskRepository(session).of_job(job)]
        profiles = [r.profile for r in results if isinstance(r, StepResult) and r.profile is not None]
    assert result is not None and result.facts is not None and result.facts.best is not None
    assert result.facts.baseline.counters == result.facts.best.counters == VALUES
    assert (tmp_path / "calls").read_text().count("\n") == 1 + len(profiled)
    assert {p.bottleneck for p in profiles} == {"memory"}, "the rules see that memory is busy"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_without_permission_the_steps_go_on_and_say_why(context: Context, tmp_path: Path) -> None:
    job = run(context, ncu(tmp_path, "refused"))
    steps = profiler_steps(context, job)
    assert steps
    for payload, known, notes in steps:
        facts = question(payload, known).model_dump()["facts"]
        assert facts["baseline"]["counters"] == {}
        assert facts["baseline"]["workloads"][0]["bytes_per_s"] > 0
        assert "no hardware counters: ncu: ERR_NVGPUCTRPERM" in facts["baseline"]["counters_missing"]
        assert notes.count("ERR_NVGPUCTRPERM - The user does not have permission") == 1
    assert (tmp_path / "calls").read_text().count("\n") == 1, "what is not permitted is asked for once"
