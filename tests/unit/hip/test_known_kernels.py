"""Every CUDA kernel of the examples and of the testbed: translated and compiled, or refused with a reason."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.kernels.kernel_styles import chosen_corpus
from tests.nvrtc_compile import compile_cuda
from warpsmith.backends.hip.include import HEADERS, RUNTIME
from warpsmith.domain.device import Backend
from warpsmith.hip.job_translation import translated_job
from warpsmith.hip.translation import translated
from warpsmith.hip.words import REFUSED, REFUSED_BEGINNINGS
from warpsmith.jobfile import load_job
from warpsmith.rewrite.reader.kernels.kernel_definitions import Dialect, find_kernels

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(ROOT.glob("examples/*/cuda.yaml"))
CORPUS = sorted(ROOT.glob("testbed/adversarial/*/*.cu"))
BY_WARPS_OF_32 = {"fused_add_rmsnorm", "softmax"}
"""Examples whose shuffles go over whole warps of 32."""
KNOWN = (*REFUSED.values(), *REFUSED_BEGINNINGS.values())
REASONS = ("exchange", "warps of 32", "a launch", "outside the subset", "with _sync")


def compiled(text: str, entry: str, options: tuple[str, ...] = ()) -> str:
    """The log of NVRTC for a HIP text behind the project's headers; empty if it compiles."""
    return compile_cuda(f"#include <{RUNTIME}>\n{text}", entry, (f"-I{HEADERS}", *options))


def of_testbed() -> Iterator[str]:
    """Texts of the kernels in `testbed.kernels`, as CUDA."""
    yield from dict.fromkeys(w.job.kernel.text for w in chosen_corpus("cuda"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.parent.name)
def test_an_example_becomes_a_hip_job_or_says_why_not(path: Path) -> None:
    found = translated_job(load_job(path))
    if path.parent.name in BY_WARPS_OF_32:
        assert found.job is None
        assert any("name a width of at most 32" in r.reason for r in found.refusals)
        return
    assert found.refusals == ()
    assert found.job is not None
    assert found.job.kernel.backend is Backend.HIP
    for step in found.job.kernel.steps:
        defines = tuple(f"-D{p.name}={p.default}" for p in found.job.parameters)
        assert compiled(found.job.kernel.text, step.entry, defines) == ""


def test_an_example_with_named_widths_is_translated() -> None:
    job = load_job(ROOT / "examples" / "softmax" / "cuda.yaml")
    text = job.kernel.text.replace("value, offset)", "value, offset, 32)")
    named = job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": text})})
    found = translated_job(named).job
    assert found is not None
    assert "__shfl_xor(value, offset, 32)" in found.kernel.text
    assert compiled(found.kernel.text, found.kernel.entry) == ""


def test_the_kernels_of_the_testbed_become_hip_and_compile() -> None:
    outcomes: Counter[str] = Counter()
    for text in of_testbed():
        found = translated({"": text})
        if found.refusals:
            outcomes["refused"] += 1
            assert all(r.reason in KNOWN or any(w in r.reason for w in REASONS) for r in found.refusals)
            continue
        entry = find_kernels(found.texts[""], Dialect.HIP)[0]
        if not entry.template:
            assert compiled(found.texts[""], "::".join((*entry.namespaces, entry.name))) == "", text
            outcomes["compiled"] += 1
    assert outcomes["compiled"] > 20
    assert outcomes["compiled"] > outcomes["refused"]


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_a_kernel_of_the_adversarial_corpus_becomes_hip_or_is_refused(path: Path) -> None:
    text = path.read_text()
    found = translated({"": text})
    if found.refusals:
        assert all(r.line and r.reason for r in found.refusals)
        return
    before = find_kernels(text, Dialect.CUDA)
    after = find_kernels(found.texts[""], Dialect.HIP)
    assert [(k.name, k.line) for k in before] == [(k.name, k.line) for k in after]
