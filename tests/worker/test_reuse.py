"""A job whose kernel was tuned before goes on from what is known, and runs nothing twice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import worker.works.agent_step
from db.engine import Database
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import TrialRow
from db.views.job_status import job_status
from db.views.result_views import candidate_list, job_result, trial_page
from tests.worker.fake_pool import as_it_is
from tests.worker.setup_fakes import FakeSetup
from tests.worker.test_execute import SilentNotifier, handle_all
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState, TrialState
from warpsmith.domain.templates.outcome import CutShort
from warpsmith.domain.templates.space import configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE, SCALE_SOURCE, scale_job
from warpsmith.tuning.trials.slice import run_slice
from worker.device.process_context import Context
from worker.works import search_slice, trial_reuse

BLOCKS = [32, 64, 128, 256]
DEFAULT = configuration_key({"BLOCK": 64, "PER": 1})


class Lab:
    """Runs jobs one after the other in one database."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def run(self, tenant: str = "default", **changes: Any) -> tuple[str, set[str]]:
        """Id of a job that has ended, and the configurations that it ran itself."""
        with self.context.database.write() as session:
            job = self.job(**changes)
            job_id = JobRepository(session).create(job, tenant=tenant)[0].id
        handle_all(self.context)
        with self.context.database.read() as session:
            status = job_status(session, job_id)
            assert status.state is JobState.DONE, status.detail
            return job_id, {t.key for t in TrialRepository(session).page(job_id, limit=1000) if not t.reused}

    def job(self, blocks: list[int] = BLOCKS, **changes: Any) -> Job:
        parameters = [
            {"name": "BLOCK", "values": blocks, "default": 64},
            {"name": "PER", "values": [1, 2, 4, 8]},
        ]
        # The fake's times say all of one workload by another; here every trial is to be whole.
        budget = {"trials": 100, "seconds": 600, "stop_early": False}
        fields = {"parameters": parameters, "budget": budget}
        return scale_job(**(fields | changes))


@pytest.fixture
def lab(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(worker.works.agent_step, "run_step", as_it_is)
    with database.write() as session:
        WorkerRepository(session).register("w", "host", 1, "0", ["control"], [DEVICE], {})
    url = database.engine.url.render_as_string(hide_password=False)
    settings = Settings(_env_file=None, data_dir=tmp_path, database_url=url, lease_s=5, renew_s=1)
    return Lab(Context(settings, database, SilentNotifier(), "w", FakeSetup()))


def test_the_same_job_again_runs_its_default_alone(lab: Lab) -> None:
    first, run = lab.run()
    assert len(run) == 16
    second, run = lab.run(name="again", seed=5)
    assert run == {DEFAULT}
    with lab.context.database.read() as session:
        before, after = job_result(session, first), job_result(session, second)
        assert before is not None and after is not None
        assert (before.trials_reused, after.trials_reused) == (0, 15)
        assert after.trials_measured + after.trials_rejected == 1, "what is reused spends no budget"
        assert [e.configuration for e in after.dispatch] == [e.configuration for e in before.dispatch]
        assert after.comparisons, "winners are measured anew"
        old, new = (
            {
                configuration_key(t.configuration): (
                    None if t.outcome is None else getattr(t.outcome, "objective", None)
                )
                for t in trial_page(session, job).items
            }
            for job in (first, second)
        )
        assert new == pytest.approx(old)
        (candidate,) = candidate_list(session, second).items
        assert candidate.feasible == 16


def test_what_was_cut_short_runs_again(lab: Lab) -> None:
    fields: dict[str, Any] = {
        "blocks": BLOCKS[::-1],
        "budget": {"trials": 100, "seconds": 600},
        "workloads": [{"dimensions": {"n": n}} for n in (4096, 1001, 2048)],
    }
    first, _ = lab.run(**fields)
    with lab.context.database.read() as session:
        found = job_result(session, first)
        assert found is not None
        assert found.trials_cut_short > 0
        assert found.trials_measured + found.trials_rejected + found.trials_cut_short == 16
        items = trial_page(session, first).items
        cut = {configuration_key(t.configuration) for t in items if isinstance(t.outcome, CutShort)}
        assert len(cut) == found.trials_cut_short
        chosen = {configuration_key(e.configuration) for e in found.dispatch if e.configuration}
        assert chosen == {configuration_key({"BLOCK": 256, "PER": 4})}
    _, run = lab.run(name="again", **fields)
    assert run == {DEFAULT, *cut}


def test_an_edited_space_runs_what_is_new(lab: Lab) -> None:
    lab.run()
    _, run = lab.run(blocks=[64, 128, 256, 512])
    new = {configuration_key({"BLOCK": 512, "PER": p}) for p in (1, 2, 4, 8)}
    assert run == new | {DEFAULT}
    job, _ = lab.run(constraints=[{"expression": "BLOCK * PER <= 512"}])
    with lab.context.database.read() as session:
        reused = [t.configuration for t in trial_page(session, job).items if t.reused]
        assert len(reused) == 12
        assert all(int(c["BLOCK"]) * int(c["PER"]) <= 512 for c in reused)
    _, run = lab.run(budget={"trials": 3, "seconds": 600}, blocks=[64, 1024])
    assert len(run) == 3, "the budget is for what is run"


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": scale_job().kernel.model_dump(mode="json") | {"source": SCALE_SOURCE + "// other\n"}},
        {"workloads": [{"dimensions": {"n": 4096}}]},
        {"tolerances": {"y": {"rtol": 1e-3, "atol": 1e-3}}},
        {"tenant": "other"},
    ],
    ids=["another kernel", "other shapes", "other tolerances", "another tenant"],
)
def test_what_means_something_else_is_not_reused(lab: Lab, change: dict[str, Any]) -> None:
    lab.run()
    _, run = lab.run(**change)
    assert len(run) == 16


def test_another_protocol_device_or_operator_reuses_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run()
    monkeypatch.setattr(trial_reuse, "PROTOCOL", trial_reuse.PROTOCOL + 1)
    assert len(lab.run()[1]) == 16
    assert len(lab.run()[1]) == 1
    job = lab.job()
    with lab.context.database.read() as session:
        row = session.query(TrialRow.candidate_id).filter(TrialRow.reused).distinct().one()
        template = CandidateRepository(session).get(row[0]).template
    keys = {trial_reuse.reuse_key(job, template, "t", device) for device in ("opencl-a-1", "opencl-a-2")}
    assert len(keys) == 2
    lab.context = replace(
        lab.context, settings=lab.context.settings.model_copy(update={"reuse_trials_s": 0.0})
    )
    assert len(lab.run()[1]) == 16


def test_trials_are_reused_while_the_operators_headers_stay_as_they_are(tmp_path: Path) -> None:
    """Their files may change under the same name."""
    job = scale_job()
    kernel = job.kernel.model_copy(update={"includes": ("cutlass",)})
    template = Template(kernel=kernel, space=job.space)
    (tmp_path / "deep").mkdir()

    def key(**folders: Path) -> str:
        return trial_reuse.reuse_key(job, template, "t", "d", include_dirs=folders)

    assert not key() and not key(other=tmp_path) and not key(cutlass=tmp_path / "none")
    keys = []
    for text in ("int a;", "int b;", "int a;"):
        (tmp_path / "deep" / "a.h").write_text(text)
        keys.append(key(cutlass=tmp_path))
    assert keys[0] == keys[2] != keys[1] and all(keys)
    (tmp_path / "deep" / "a.h").rename(tmp_path / "deep" / "b.h")
    assert key(cutlass=tmp_path) not in keys
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_reuse, "MOST_HEADERS", 1)
        assert not key(cutlass=tmp_path)


def test_another_compiler_of_the_driver_reuses_nothing() -> None:
    job = scale_job()
    template = Template(kernel=job.kernel, space=job.space)
    keys = {
        trial_reuse.reuse_key(job, template, "t", "d", made) for made in ("LLVM 14", "LLVM 15", "LLVM 14")
    }
    assert len(keys) == 2


def test_a_worker_that_died_after_taking_over_goes_on(lab: Lab) -> None:
    """What was taken over is no first trial: the template is still checked whole."""
    lab.run()
    with lab.context.database.write() as session:
        job_id = JobRepository(session).create(lab.job())[0].id

    calls: list[bool] = []

    def dies(*arguments: Any, **words: Any) -> Any:
        calls.append(arguments[6].gate)
        if len(calls) == 1:
            raise RuntimeError("killed")
        return run_slice(*arguments, **words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_slice, "run_slice", dies)
        handle_all(lab.context)
    assert calls == [True, True]
    with lab.context.database.read() as session:
        rows = TrialRepository(session).page(job_id, limit=1000)
        assert len(rows) == len({r.key for r in rows}) == 16
        assert all(r.state is TrialState.FINISHED for r in rows)
        assert [r.key for r in rows if not r.reused] == [DEFAULT]
        assert job_status(session, job_id).state is JobState.DONE


def test_a_job_that_also_asks_for_energy_shares_its_trials() -> None:
    kernel = scale_job().kernel.model_copy(update={"backend": Backend.CUDA})
    jobs = [
        scale_job(kernel=kernel.model_dump(mode="json"), objective=asked)
        for asked in ({}, {"energy": True}, {"metric": "energy"})
    ]
    template = Template(kernel=kernel, space=jobs[0].space)
    plain, metered, by_energy = (trial_reuse.reuse_key(job, template, "t", "cuda-a-1") for job in jobs)
    assert plain == metered
    assert by_energy != plain
