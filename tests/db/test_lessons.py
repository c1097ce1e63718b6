"""Lessons of earlier jobs are found by kernel, device and tenant."""

import time

import pytest
from sqlalchemy import insert

from db.engine import Database, utc_now
from db.repositories.memory.lessons import LessonRepository
from db.tables import LessonRow
from warpsmith.domain.jobs.job import Job
from warpsmith.testing.jobs import DEVICE, SCALE_SOURCE, scale_job
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.tuning.lessons.kernel_likeness import SKETCH_SIZE, sketch
from warpsmith.tuning.lessons.lesson import Lesson

JOBS = 10_000


def job(source: str = SCALE_SOURCE) -> Job:
    return scale_job(kernel=scale_job().kernel.model_dump(mode="json") | {"source": source})


def lesson(of: Job, device_class: str = DEVICE.device_class) -> Lesson:
    return Lesson(job=of, device=DEVICE, device_class=device_class, speedup=1.5, attempts=(), served=())


SIBLING = job(SCALE_SOURCE.replace("2.0f * x[i]", "fmax(2.0f * x[i], 0.0f)"))
STRANGER = job("__kernel void scale(__global float* y) { y[get_global_id(1)] += 1.0f; }")


def names(database: Database, device_class: str, tenant: str | None = "a", count: int = 9) -> list[str]:
    with database.read() as session:
        found = LessonRepository(session).alike(job().kernel, device_class, tenant, count)
        return [f.job_id for f in found]


def test_the_same_kernel_comes_first_and_strangers_never(database: Database) -> None:
    with database.write() as session:
        lessons = LessonRepository(session)
        lessons.add("stranger", "a", lesson(STRANGER))
        lessons.add("sibling", "a", lesson(SIBLING))
        lessons.add("elsewhere", "a", lesson(job(), "opencl-other"))
        lessons.add("here", "a", lesson(job()))
        lessons.add("theirs", "b", lesson(job()))
    assert names(database, DEVICE.device_class) == ["here", "elsewhere", "sibling"]
    assert names(database, "opencl-other") == ["elsewhere", "here", "sibling"]
    assert names(database, DEVICE.device_class, count=1) == ["here"]
    assert set(names(database, DEVICE.device_class, tenant=None)) == {
        "here",
        "elsewhere",
        "sibling",
        "theirs",
    }


def test_a_job_has_one_lesson(database: Database) -> None:
    with database.write() as session:
        LessonRepository(session).add("one", "a", lesson(job(), "opencl-other"))
    with database.write() as session:
        LessonRepository(session).add("one", "a", lesson(SIBLING))
    with database.read() as session:
        (found,) = LessonRepository(session).alike(SIBLING.kernel, DEVICE.device_class, "a", 9)
        assert (found.lesson.device_class, found.is_same_kernel) == (DEVICE.device_class, True)
        assert LessonRepository(session).has("one")
        assert not LessonRepository(session).has("other")


def test_a_bound_session_sees_its_tenant_alone(database: Database) -> None:
    with database.write() as session:
        LessonRepository(session).add("one", "a", lesson(job()))
    with database.of("b").read() as session:
        assert not LessonRepository(session).alike(job().kernel, DEVICE.device_class, None, 9)


def test_many_jobs_are_looked_through_soon(database: Database) -> None:
    stored = lesson(SIBLING)
    with database.write() as session:
        row = {
            "tenant": "a",
            "backend": "opencl",
            "device_class": DEVICE.device_class,
            "kernel": fingerprint(SIBLING.kernel),
            "sketch": sketch(SIBLING.kernel).astype("<u2").tobytes(),
            "lesson": stored,
            "created_at": utc_now(),
        }
        session.execute(insert(LessonRow), [row | {"job_id": str(n)} for n in range(JOBS)])
    with database.read() as session:
        taken = []
        for _ in range(5):
            began = time.perf_counter()
            found = LessonRepository(session).alike(job().kernel, DEVICE.device_class, "a", 3)
            taken.append(time.perf_counter() - began)
    assert len(found) == 3
    # On a quiet machine it is 0.05 s; ten times that says that it grew with something else.
    assert min(taken) < 0.5, taken


@pytest.mark.parametrize("of", [job(), SIBLING], ids=["kernel", "sibling"])
def test_sketches_have_one_form_in_every_database(of: Job, database: Database) -> None:
    with database.write() as session:
        LessonRepository(session).add("one", "a", lesson(of))
    with database.read() as session:
        row = session.get(LessonRow, "one")
        assert row is not None
        assert len(row.sketch) == 2 * SKETCH_SIZE
