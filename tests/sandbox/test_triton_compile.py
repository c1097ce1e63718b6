"""Triton kernels compiled in a child, without a GPU: variants, facts, refusals."""

from collections.abc import Iterator
from typing import Any

import pytest

from warpsmith.device_checks.absent_devices import any_cuda_device
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.domain.templates.variant_binaries import Variant, split
from warpsmith.sandbox import CompilePool
from warpsmith.tuning.execution.variants import submit

DEVICE = any_cuda_device("sm_90")
SHAPES = ((1024, 1), (1000, 1), (1040, 16), (2048, 1))
SOURCE = """import triton
import triton.language as tl


@triton.jit
def scale(
    x, y, n, stride, alpha, BLOCK: tl.constexpr, KIND: tl.constexpr = "plain", TYPE: tl.constexpr = None
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets * stride, mask=offsets < n, other=0.0)
    if KIND == "square":
        value = value * value
    if TYPE is not None:
        value = value.to(TYPE)
    tl.store(y + offsets, value * alpha, mask=offsets < n)
"""


def job(**changes: Any) -> Job:
    """A kernel whose workloads are of different classes."""
    kernel = {
        "backend": "triton",
        "source": SOURCE,
        "entry": "scale",
        "arguments": [
            {"name": "x", "dtype": "float16", "role": "input", "shape": ["n * s"]},
            {"name": "y", "dtype": "float16", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            {"name": "stride", "dtype": "int32", "role": "scalar", "value": "s"},
            {"name": "alpha", "dtype": "float32", "role": "scalar", "value": 1},
        ],
        "launch": {"grid": ["ceil_div(n, BLOCK)"]},
    }
    fields = {
        "name": "scale",
        "kernel": kernel | changes.pop("kernel", {}),
        "parameters": [{"name": "BLOCK", "values": [128, 512]}],
        "workloads": [
            {"dimensions": {"n": n, "s": s}} for n, s in ((1024, 1), (1000, 1), (1040, 16), (2048, 1))
        ],
    }
    return Job.model_validate(fields | changes)


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    """Two children."""
    made = CompilePool(workers=2)
    yield made
    made.close()


def compiled(pool: CompilePool, of: Job, **configuration: Any) -> Compiled | Rejected:
    template = Template(kernel=of.kernel, space=of.space)
    return submit(pool, template.configured(of.space.defaults | configuration), of.workloads, DEVICE).result()


def variants(pool: CompilePool, of: Job, **configuration: Any) -> list[Variant]:
    found = compiled(pool, of, **configuration)
    assert isinstance(found, Compiled), found
    return list(split(found.binary))


def test_workloads_of_a_class_share_a_variant_and_launches_find_theirs(pool: CompilePool) -> None:
    of = job()
    found = variants(pool, of)
    assert len(found) == 3, "a stride of 1 with n a multiple of 16, or not; and a stride of 16"
    kernel = Template(kernel=of.kernel, space=of.space).configured({"BLOCK": 128})
    sizes = [launch_size(kernel, w, DEVICE) for w in of.workloads]
    assert {s.variant for s in sizes} == {v.key for v in found}
    assert sizes[0].variant == sizes[3].variant != sizes[1].variant
    passes = {v.key: v.passes for v in found}
    assert passes[sizes[0].variant] == (0, 1, 2, 4), "a stride of 1 is a constant and is not passed"
    assert passes[sizes[2].variant] == (0, 1, 2, 3, 4)


def test_what_a_launch_needs_is_of_the_compiler(pool: CompilePool) -> None:
    (first, *_) = variants(pool, job(kernel={"constexprs": {"num_warps": 8}}))
    assert first.threads == 256 and first.blocks == 1 and first.entry == "scale" and first.trailing == 2
    found = compiled(pool, job())
    assert isinstance(found, Compiled)
    assert found.facts.registers and found.facts.compiler.startswith("triton 3.") and found.facts.seconds > 0


def test_constexprs_are_expressions_texts_types_and_nothing(pool: CompilePool) -> None:
    plain = variants(pool, job())
    square = variants(pool, job(kernel={"constexprs": {"KIND": "'square'"}}))
    typed = variants(pool, job(kernel={"constexprs": {"TYPE": "tl.float32"}}))
    assert len({v[0].binary for v in (plain, square, typed)}) == 3
    of_n = job(kernel={"constexprs": {"BLOCK": "min(512, next_pow2(n))"}}, parameters=[])
    assert of_n.kernel.launch.grid[0].integer({"n": 1000}) == 2, "the grid may name a constexpr"
    assert len(variants(pool, of_n)) == 3


def test_options_of_the_launch_are_parameters(pool: CompilePool) -> None:
    names = ("num_warps", "num_stages", "maxnreg", "num_ctas")
    of = job(
        parameters=[
            {"name": "BLOCK", "values": [512]},
            *(
                {"name": n, "values": v}
                for n, v in zip(names, ([4, 8], [3, 1], [0, 32], [1, 2]), strict=True)
            ),
        ]
    )
    few, many = variants(pool, of), variants(pool, of, num_warps=8, maxnreg=32, num_ctas=2)
    assert (few[0].threads, few[0].blocks) == (128, 1)
    assert (many[0].threads, many[0].blocks) == (256, 2)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ({"source": SOURCE.replace("tl.load(", "tl.lod(")}, "no attribute 'lod'"),
        ({"source": SOURCE.replace("tl.arange(0, BLOCK)", "tl.arange(0, 100)")}, "power of 2"),
        ({"constexprs": {"KIND": "'plain'", "OTHER": 3}}, "OTHER is no parameter of the function"),
        ({"constexprs": {"TYPE": "tl.float17"}}, "no type float17"),
        ({"source": SOURCE.replace("def scale", "def other")}, "no @triton.jit function scale"),
        ({"source": "import torch\n" + SOURCE.replace("* alpha", "* torch.pi")}, "torch comes from torch"),
        ({"source": SOURCE.replace("alpha,", "beta,").replace("* alpha", "")}, "no parameter alpha"),
        ({"source": SOURCE.replace("stride, alpha", "stride, alpha, more")}, "parameter more has no value"),
    ],
)
def test_what_does_not_compile_says_why(pool: CompilePool, kernel: dict[str, Any], reason: str) -> None:
    found = compiled(pool, job(kernel=kernel))
    assert isinstance(found, Rejected) and reason in found.reason, found


def test_arguments_in_another_order_are_refused(pool: CompilePool) -> None:
    of = job()
    swapped = of.kernel.model_copy(update={"arguments": tuple(reversed(of.kernel.arguments))})
    found = compiled(pool, of.model_copy(update={"kernel": swapped}))
    assert isinstance(found, Rejected) and "not in the function's order" in found.reason
