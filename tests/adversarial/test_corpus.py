"""A part of the corpus through the whole acceptance procedure on PoCL; `benchmarks/trust` runs all of it.

What a file states must be true, both ways: a case marked `open` that is caught fails here too, until
its file says so.
"""

from collections import Counter

import pytest

from testbed.adversarial.corpus import KINDS, WORKLOADS, Case, load, task_job
from testbed.adversarial.harness import Harness
from testbed.adversarial.verdict import PART, check_stated_verdict
from tests.sandbox.kernels import CUDA_DEVICE
from warpsmith.domain.device import Backend
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.sandbox import CompilePool

ALL = {case.name: case for kind in KINDS for case in load(kind)}
NO_KERNEL = {"D17", "D22"}
"""What no kernel can do by itself: kernels end before the next is timed, and volume is about many of them."""
TIMED = [pytest.mark.alone]
"""Whether a cheat gains something is a comparison of times, which company spoils."""


def test_the_corpus_is_as_large_as_promised_and_covers_the_exploits() -> None:
    """Cheats and honest kernels run on OpenCL and, but for a few, on CUDA."""
    kinds = Counter(case.kind for case in ALL.values())
    assert kinds["cheats"] >= 45
    assert kinds["honest"] >= 45
    assert kinds["mutants"] >= 45
    covered = {case.exploit for case in ALL.values() if case.kind == "cheats"}
    assert covered == {f"D{n}" for n in range(1, 28)} - NO_KERNEL
    for case in ALL.values():
        assert (case.expect == "accepted") == (case.kind == "honest"), case.name
        assert case.task in WORKLOADS


def test_no_case_of_the_corpus_is_another_one() -> None:
    """Variants differ in what they compile or launch or report, not in name only."""
    seen: dict[str, str] = {}
    for case in ALL.values():
        backend = case.backends[0]
        made = f"{case.template(backend).model_dump_json()} {case.tolerance} {case.times}"
        assert made not in seen, f"{case.name} is {seen[made]}"
        seen[made] = case.name


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=TIMED if ALL[n].expect == "no gain" else ()) for n in PART]
)
def test_a_case_gets_the_verdict_that_its_file_states(name: str, harness: Harness) -> None:
    """Expected verdict, and where it ends."""
    check_stated_verdict(harness, ALL[name], Backend.OPENCL)


def _for_cuda() -> list[Case]:
    chosen = [case for case in ALL.values() if case.backends == (Backend.CUDA,)]
    seen = {(case.kind, case.task) for case in chosen}
    for case in ALL.values():
        if Backend.CUDA in case.backends and (case.kind, case.task) not in seen:
            seen.add((case.kind, case.task))
            chosen.append(case)
    return chosen


def test_the_corpus_compiles_for_cuda_where_it_should(pool: CompilePool) -> None:
    """The files in CUDA and, of those that serve both back ends, one for each task and kind."""
    asked = {
        case.name: (
            case.layer == "compile",
            pool.submit(_configured(case.template(Backend.CUDA)), CUDA_DEVICE),
        )
        for case in _for_cuda()
    }
    asked |= {
        task: (
            False,
            pool.submit(_configured(Template(kernel=task_job(task, Backend.CUDA).kernel)), CUDA_DEVICE),
        )
        for task in WORKLOADS
    }
    for name, (refused, future) in asked.items():
        result = future.result()
        # No kernel of a task tells where it is compiled, so a candidate that does is refused.
        assert (isinstance(result, Rejected) or bool(result.telling)) == refused, (
            name,
            result if refused else getattr(result, "log", ""),
        )


WITH_WORDS = [
    case
    for case in ALL.values()
    if Backend.CUDA in case.backends
    and case.exploit in ("", "D4")
    and any(word in case.name for word in ("_words.", "_telling_", "words_in"))
]
"""What names telling words, or hides them, and is not refused for another reason."""


@pytest.mark.parametrize("case", WITH_WORDS, ids=lambda case: case.name)
def test_who_tells_where_it_is_compiled_for_cuda_is_known(pool: CompilePool, case: Case) -> None:
    result = pool.submit(_configured(case.template(Backend.CUDA)), CUDA_DEVICE).result()
    assert not isinstance(result, Rejected), result.log
    assert bool(result.telling) == (case.kind == "cheats"), result.telling


def _configured(template: Template) -> ConfiguredKernel:
    return template.configured(template.space.defaults).model_copy(update={"tells_words": True})
