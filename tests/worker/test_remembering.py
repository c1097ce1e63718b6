"""A job on a kernel like an earlier one starts from what gained there."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.orm import Session

import worker.works.agent_step
from agents.providers.steps import run_step
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.memory.lessons import LessonRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.views.finished_lessons import learn
from testbed.replay import replay
from tests.worker.test_reuse import Lab, lab
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.testing.jobs import DEVICE, SCALE_SOURCE, scale_job
from warpsmith.tuning.lessons.lesson import Served
from warpsmith.tuning.tasks import StepResult

__all__ = ["lab"]


def sibling(**changes: Any) -> dict[str, Any]:
    """The same kernel with another epilogue, which no trial can be taken over for."""
    kernel = scale_job().kernel.model_dump(mode="json")
    source = SCALE_SOURCE.replace("2.0f * x[i]", "x[i] * 2.0f + 0.0f")
    assert source != SCALE_SOURCE
    return {"kernel": kernel | {"source": source}} | changes


def order(lab: Lab, job_id: str) -> list[dict[str, Any]]:
    with lab.context.database.read() as session:
        return [t.configuration for t in TrialRepository(session).page(job_id, limit=1000)]


def best_of(lab: Lab, job_id: str) -> dict[str, Any]:
    with lab.context.database.read() as session:
        (found,) = LessonRepository(session).alike(
            JobRepository(session).get(job_id, with_spec=True).spec.kernel, DEVICE.device_class, None, 1
        )
        return found.lesson.attempts[0].best[0][0]


def test_a_sibling_tries_the_winner_early(lab: Lab) -> None:
    first, _ = lab.run()
    best = best_of(lab, first)
    second, run = lab.run(**sibling())
    assert len(run) == 16, "another kernel's trials are no trials of this one"
    with_memory = order(lab, second).index(best)
    lab.context = replace(lab.context, settings=lab.context.settings.model_copy(update={"remembers": False}))
    third, _ = lab.run(**sibling(name="forgetful"))
    assert with_memory <= 2
    assert with_memory < order(lab, third).index(best)


@pytest.mark.parametrize("tenant", ["default", "other"])
def test_tenants_do_not_learn_from_each_other(lab: Lab, tenant: str) -> None:
    first, _ = lab.run()
    second, _ = lab.run(tenant=tenant, **sibling())
    early = order(lab, second).index(best_of(lab, first)) <= 2
    assert early is (tenant == "default")


def test_a_job_is_learned_once_and_its_own_lesson_is_not_its_start(lab: Lab) -> None:
    job_id, _ = lab.run()
    with lab.context.database.write() as session:
        assert LessonRepository(session).has(job_id)
        assert learn(session, job_id), "again is no fault"
        row = JobRepository(session).get(job_id, with_spec=True)
        kernel: Kernel = row.spec.kernel
        alike = LessonRepository(session).alike(kernel, DEVICE.device_class, row.tenant, 5, but=job_id)
        assert alike == ()
        (found,) = LessonRepository(session).alike(kernel, DEVICE.device_class, row.tenant, 5)
        assert found.is_same_kernel
        assert found.lesson.job == row.spec
        assert [s.workload for s in found.lesson.served] == [w.key for w in row.spec.workloads]


@pytest.fixture
def honest(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab whose agents are the built-in rules."""
    monkeypatch.setattr(worker.works.agent_step, "run_step", run_step)
    return lab


def test_a_known_kernel_is_tuned_again_from_the_template_that_gained(honest: Lab) -> None:
    first, _ = honest.run(workloads=[{"dimensions": {"n": 4096}}])
    with honest.context.database.write() as session:  # the fake device gains nothing over its baseline
        (found,) = LessonRepository(session).alike(honest.job().kernel, DEVICE.device_class, "default", 1)
        configuration, _ = found.lesson.attempts[0].best[0]
        served = Served(workload="n=4096", attempt=0, configuration=configuration, speedup=1.5)
        gained = found.lesson.model_copy(update={"served": (served,), "speedup": 1.5})
        LessonRepository(session).add(first, "default", gained)
    second, _ = honest.run(workloads=[{"dimensions": {"n": 8192}}])
    third, _ = honest.run(workloads=[{"dimensions": {"n": 16384}}])
    with honest.context.database.read() as session:
        told = [[r for r in step_results(session, i) if r.earlier] for i in (second, third)]
        assert [{r.earlier for r in results} for results in told] == [{(first,)}, {(second, first)}]
        (note,) = [n for r in told[0] for n in r.notes if first in n]
        assert note.startswith("the template of job")
        of_first, of_second = (
            CandidateRepository(session).of_job(i, with_templates=True)[0].template for i in (first, second)
        )
        assert of_second.kernel == of_first.kernel
        assert configuration in of_second.warm_starts
        assert order(honest, second).index(configuration) <= 1
        for job_id in (first, second, third):  # lessons that came later change no past decision
            assert replay(session, job_id, {}).differences == ()


def test_a_forgetful_service_tells_nobody(honest: Lab) -> None:
    settings = honest.context.settings
    honest.context = replace(honest.context, settings=settings.model_copy(update={"remembers": False}))
    ids = [honest.run(workloads=[{"dimensions": {"n": n}}])[0] for n in (4096, 8192)]
    with honest.context.database.read() as session:
        assert not any(r.earlier for r in step_results(session, ids[1]))


@pytest.mark.parametrize("shares", [False, True])
def test_the_operator_says_whether_tenants_share(honest: Lab, shares: bool) -> None:
    settings = honest.context.settings
    honest.context = replace(honest.context, settings=settings.model_copy(update={"shares_lessons": shares}))
    first, _ = honest.run(tenant="one", workloads=[{"dimensions": {"n": 4096}}])
    second, _ = honest.run(tenant="two", workloads=[{"dimensions": {"n": 8192}}])
    with honest.context.database.read() as session:
        told = {r.earlier for r in step_results(session, second) if r.earlier}
    assert told == ({(first,)} if shares else set())


def step_results(session: Session, job_id: str) -> list[StepResult]:
    tasks = TaskRepository(session).of_job(job_id)
    return [t.result for t in tasks if isinstance(t.result, StepResult)]
