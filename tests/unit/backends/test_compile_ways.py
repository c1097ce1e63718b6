"""What the pool remembers of how templates are compiled."""

import shutil

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import CUDA_DEVICE, kernel
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.sandbox import CompilePool
from warpsmith.sandbox.hosts.compile_ways import FUTILE, TEMPLATES, LearnedWays


def test_an_unknown_template_begins_with_the_first_way() -> None:
    assert LearnedWays().begin("a") == ("", True)


def test_a_template_begins_with_the_way_that_worked() -> None:
    ways = LearnedWays()
    ways.compiled("a", "", "nvcc")
    assert ways.begin("a") == ("nvcc", True)
    assert ways.begin("b") == ("", True)


def test_a_late_answer_of_the_first_way_does_not_undo_what_another_configuration_needed() -> None:
    ways = LearnedWays()
    ways.compiled("a", "", "nvcc")
    ways.compiled("a", "", "nvrtc")
    assert ways.begin("a") == ("nvcc", True)
    ways.compiled("b", "", "nvrtc")
    ways.compiled("b", "nvrtc", "nvcc")
    assert ways.begin("b") == ("nvcc", True)


def test_a_template_that_no_way_helps_is_spared_further_ones_until_one_is_compiled() -> None:
    ways = LearnedWays()
    for _ in range(FUTILE):
        assert ways.begin("a") == ("", True)
        ways.refused("a")
    assert ways.begin("a") == ("", False)
    ways.compiled("a", "", "nvrtc")
    assert ways.begin("a") == ("nvrtc", True)


def test_only_so_many_templates_are_remembered() -> None:
    ways = LearnedWays()
    for k in range(TEMPLATES + 1):
        ways.compiled(str(k), "", "nvcc")
    assert ways.begin("0") == ("", True)
    assert ways.begin("1") == ("nvcc", True)


BODY = 'extern "C" __global__ void f(float* x, float* y, int n) { int64_t i = threadIdx.x; y[i] = x[i]; }'


def test_the_pool_tells_a_compiler_what_other_configurations_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, bool]] = []
    begin = LearnedWays.begin

    def recorded(self: LearnedWays, template: str) -> tuple[str, bool]:
        sent.append(begin(self, template))
        return sent[-1]

    monkeypatch.setattr(LearnedWays, "begin", recorded)
    pool = CompilePool(workers=1, timeout_s=60)
    try:
        made = [
            pool.submit(kernel(Backend.CUDA, text), CUDA_DEVICE).result(HANGS_S)
            for text in (BODY, BODY, BODY.replace("int64_t", "int"))
        ]
    finally:
        pool.close()
    assert [r.way for r in made if isinstance(r, Compiled)] == ["nvrtc-ordinary", "nvrtc-ordinary", "nvrtc"]
    assert sent == [("", True), ("nvrtc-ordinary", True), ("", True)]


def test_a_source_that_no_compiler_takes_is_soon_given_to_the_first_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may: list[bool] = []
    begin = LearnedWays.begin

    def recorded(self: LearnedWays, template: str) -> tuple[str, bool]:
        found = begin(self, template)
        may.append(found[1])
        return found

    monkeypatch.setattr(LearnedWays, "begin", recorded)
    pool = CompilePool(workers=1, timeout_s=60)
    try:
        made = [
            pool.submit(kernel(Backend.CUDA, "#include <no_such_header>\n"), CUDA_DEVICE).result(HANGS_S)
            for _ in range(FUTILE + 1)
        ]
    finally:
        pool.close()
    assert all(isinstance(r, Rejected) for r in made)
    assert all("no_such_header" in r.log for r in made if isinstance(r, Rejected))
    assert may == [True] * FUTILE + [shutil.which("nvcc") is None]
