"""A macro may assign to its arguments; a buffer among them is never declared as only read."""

import pytest
from yaml import safe_load

from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.extensions.rules.templater import make_template
from warpsmith.extensions.scaffold.job_file import job_scaffold
from warpsmith.job_files.jobfile import parse_job
from warpsmith.settings import Settings
from warpsmith.source.kernels.kernel_definitions import Dialect

KERNEL = """__kernel void k(__global const float* x, __global float* y, __global float* z, int n) {{
  int i = get_global_id(0);
  if (i < n) {{ {body} }}
}}
"""


@pytest.mark.parametrize(
    ("macros", "body", "read"),
    [
        ("#define PUT(a, b) a = b\n", "PUT(y[i], x[i]); z[i] = 1;", set()),
        ("#define PUT(a, b) a = b\n#define ADD(a, b) PUT(a, a + b)\n", "ADD(y[i], x[i]); z[i] = 1;", set()),
        ("#define BUMP(a) a++\n", "BUMP(y[i]); z[i] = x[i];", set()),
        ("#define PUT(a, b) a = b\n", "PUT(y[i], x[i]); float t = z[i]; PUT(y[i], t);", {"z"}),
        ("#define SAME(a, b) ((a) == (b) ? (a) : (b))\n", "z[i] = SAME(y[i], x[i]);", {"y"}),
    ],
)
def test_what_a_macro_assigns_to_is_not_const(macros: str, body: str, read: set[str]) -> None:
    text = job_scaffold(macros + KERNEL.format(body=body), "k.cl", Dialect.OPENCL, None)
    data = safe_load(text)
    data["kernel"] = {**data["kernel"], "source": macros + KERNEL.format(body=body)}
    del data["kernel"]["source_file"]
    template = make_template(parse_job(data), {}).template
    assert "restrict" in [a.rule for a in template.applied]
    made = template.kernel.text
    assert {name for name in "yz" if f"const float* restrict {name}" in made} == read
    with JobCompiler(Settings(_env_file=None)) as compiler:
        assert not isinstance(compiler.of_template(template), Rejected)
