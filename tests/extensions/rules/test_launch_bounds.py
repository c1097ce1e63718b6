"""Bounds that tell the compiler how large blocks are, and how many registers threads should take."""

import pytest

from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template

BODY = """(const float* x, float* y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""


def report_of(head: str, block: str, **policy: list[str]) -> TemplateReport:
    job = Job.model_validate(
        {
            "name": "k",
            "kernel": {
                "backend": "cuda",
                "source": head + BODY,
                "entry": "k",
                "arguments": [
                    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
                    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
                    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                ],
                "launch": {"grid": ["ceil_div(n, 64)"], "block": [block]},
            },
            "workloads": [{"dimensions": {"n": 256}}],
            "reference": {
                "kind": "numpy",
                "source": "def reference(inputs, dims):\n    return {'y': inputs['x']}\n",
            },
            "rewrite": policy or {"allow": ["launch_bounds"]},
        }
    )
    return make_template(job)


def compiled(template: Template, resident: int) -> str:
    kernel = template.configured({**template.space.defaults, "WS_RESIDENT": resident})
    return compile_cuda(kernel.source, kernel.kernel.entry)


@pytest.mark.parametrize(
    ("head", "block", "text"),
    [
        ('extern "C" __global__ void k', "64", "__launch_bounds__(64, WS_RESIDENT / (64)) k("),
        ('extern "C" __global__ void k', "min(n, 64)", "void WS_REGISTERS k("),
        (
            'extern "C" __global__ void __launch_bounds__(2 * (16 + 16)) k',
            "64",
            "__launch_bounds__(2 * (16 + 16), WS_RESIDENT / (2 * (16 + 16))) k(",
        ),
        (
            'extern "C" __launch_bounds__(64) __global__ void k',
            "64",
            "__launch_bounds__(64, WS_RESIDENT / (64)) __global__",
        ),
    ],
)
def test_the_compiler_is_told_how_many_threads_to_spare_registers_for(
    head: str, block: str, text: str
) -> None:
    template = report_of(head, block).template
    assert text in template.kernel.text
    for resident in (0, 1024, 2048):
        assert compiled(template, resident) == "", resident


@pytest.mark.parametrize("attribute", ["__launch_bounds__(64, 2)", "__maxnreg__(32)"])
def test_a_kernel_that_says_more_keeps_it(attribute: str) -> None:
    report = report_of(f'extern "C" __global__ void {attribute} k', "64")
    assert not report.template.applied
    assert any("already" in d.reason for d in report.declined)


def test_bounds_of_another_kernel_are_left_alone() -> None:
    other = "__global__ void __launch_bounds__(32) other(float* y) { y[0] = 1.0f; }\n"
    text = report_of(other + 'extern "C" __global__ void k', "64").template.kernel.text
    assert "__launch_bounds__(32) other" in text
    assert "__launch_bounds__(64, WS_RESIDENT / (64)) k(" in text


def test_more_threads_than_a_multiprocessor_holds_are_never_compiled() -> None:
    constraints = report_of('extern "C" __global__ void k', "64").template.space.constraints
    assert [c.expression.text for c in constraints] == [
        "WS_RESIDENT <= device.max_threads_per_multiprocessor"
    ]


def test_later_rules_still_read_a_kernel_whose_registers_are_limited() -> None:
    head = "__device__ float half_of(float v) { return v / 3.0f; }\n"
    report = report_of(head + 'extern "C" __global__ void k', "min(n, 64)", deny=["elements_per_thread"])
    assert {"launch_bounds", "restrict"} <= {a.rule for a in report.template.applied}
