"""The bench of the memory: siblings are other kernels, a false lesson is false, figures are counted right."""

import pytest

from benchmarks.agents.memory import CLAIMED, EPILOGUES, Done, misleading, near, row, sibling
from benchmarks.job_files import job_file, load
from warpsmith.domain.job import KernelReference
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.tuning.lessons.lesson import Attempt, Lesson, Served

FAST: Configuration = {"BLOCK": 256, "PER": 4}
SLOW: Configuration = {"BLOCK": 32, "PER": 1}


def done(*objectives: float | None) -> Done:
    return Done(1.5, tuple((FAST, o) for o in objectives), 9.0, None)


@pytest.mark.parametrize("backend", ["cuda", "opencl"])
@pytest.mark.parametrize("name", EPILOGUES)
def test_a_sibling_is_another_kernel_and_its_own_reference(name: str, backend: str) -> None:
    if job_file(name, backend) is None:
        assert backend == "opencl"
        return
    job = load(name, backend)
    other = sibling(job, name)
    assert fingerprint(other.kernel) != fingerprint(job.kernel)
    assert isinstance(other.reference, KernelReference)
    assert other.workloads == job.workloads


def test_a_false_lesson_calls_the_worst_the_winner() -> None:
    job = scale_job()
    attempt = Attempt(template=Template(kernel=job.kernel, space=job.space), trials=3, objective=0.5)
    served = Served(workload="n=4096", attempt=0, configuration=FAST, speedup=1.9)
    lesson = Lesson(
        job=job, device=DEVICE, device_class="x", speedup=1.9, attempts=(attempt,), served=(served,)
    )
    false = misleading(lesson, ((FAST, 0.5), (SLOW, 1.4), ({"BLOCK": 64, "PER": 1}, None)))
    assert false is not None
    assert (false.served[0].configuration, false.served[0].speedup) == (SLOW, CLAIMED)
    assert false.attempts[0].best == ((SLOW, 1 / CLAIMED),)
    assert misleading(lesson, ((FAST, None),)) is None


def test_a_run_is_held_against_the_best_of_its_job() -> None:
    found = row("scale", {"fresh": done(1.0, None, 0.54, 0.5), "known": done(0.52), "misled": done(1.2, 0.9)})
    assert {k: r["to_near_best"] for k, r in found["runs"].items()} == {
        "fresh": 4,
        "known": 1,
        "misled": None,
    }
    assert near([None, 2.0], 2.0) == 2
