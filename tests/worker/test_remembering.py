"""A job on a kernel like an earlier one starts from what gained there."""

from dataclasses import replace
from typing import Any

import pytest

from db.finished_lessons import learn
from db.repositories.jobs import JobRepository
from db.repositories.lessons import LessonRepository
from db.repositories.trials import TrialRepository
from tests.worker.test_reuse import Lab, lab
from warpsmith.domain.kernel import Kernel
from warpsmith.testing.jobs import DEVICE, SCALE_SOURCE, scale_job

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
