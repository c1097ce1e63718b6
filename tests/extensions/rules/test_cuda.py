"""Templates of the CUDA examples compile for sm_90 in every configuration drawn; goldens of their source."""

import os

import pytest

from testbed.example_jobs import FAMILIES, ROOT, load_example
from tests.extensions.rules.test_opencl import feasible
from tests.nvrtc_compile import compile_cuda
from warpsmith.extensions.rules.templater import make_template

GOLDEN = ROOT / "tests" / "golden" / "rewrite"
EXPECTED = {
    "silu_and_mul": {"WS_BLOCK", "WS_ROW_SPLIT", "WS_VEC", "WS_UNROLL", "WS_FAST_MATH"},
    "fused_add_rmsnorm": {"WS_BLOCK", "WS_VEC", "WS_UNROLL", "WS_FAST_MATH"},
    "merge_attn_states": {"WS_BLOCK", "WS_ROW_SPLIT", "WS_ROWS", "WS_VEC", "WS_UNROLL", "WS_FAST_MATH"},
    "softmax": {"WS_BLOCK", "WS_VEC", "WS_UNROLL", "WS_FAST_MATH"},
    "matmul": {"WS_TILE", "WS_UNROLL"},
    "stencil": {"WS_BLOCK_X", "WS_BLOCK_Y", "WS_ITEMS_X", "WS_ITEMS_Y"},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_configurations_compile(family: str) -> None:
    job = load_example(family, "cuda")
    template = make_template(job).template
    assert {p.name for p in template.space.parameters} >= EXPECTED[family]
    for configuration in feasible(template, job.workloads[0], seed=7, count=6):
        kernel = template.configured(configuration)
        assert compile_cuda(kernel.source, kernel.kernel.entry) == "", configuration


@pytest.mark.parametrize("backend", ["cuda", "opencl"])
@pytest.mark.parametrize("family", FAMILIES)
def test_generated_source_is_the_golden_one(family: str, backend: str) -> None:
    """Set WARPSMITH_WRITE_GOLDEN=1 to write the files anew, and read the difference."""
    text = make_template(load_example(family, backend)).template.kernel.text
    path = GOLDEN / f"{family}.{'cu' if backend == 'cuda' else 'cl'}"
    if os.environ.get("WARPSMITH_WRITE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def test_spaces_stay_small() -> None:
    for family in FAMILIES:
        for backend in ("cuda", "opencl"):
            size = 1
            for p in make_template(load_example(family, backend)).template.space.parameters:
                size *= len(p.values)
            assert size <= 30_000
