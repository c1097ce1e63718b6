"""Rules look through macros and typedefs, and say which macro kept them from it."""

from pathlib import Path

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.extensions.rules.test_edits import copying
from tests.extensions.rules.test_opencl import feasible
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.extensions.rules.templater import first_draft, make_template

LISTED = "__global const float *x, __global float *y, const int n"


def job_of(macros: str, body: str, **changes: object) -> Job:
    """A job of one element a thread whose body uses macros."""
    job = copying("opencl", LISTED, body)
    kernel = job.kernel.model_dump() | {"source": f"{macros}\n{job.kernel.text}"} | changes
    return Job.model_validate(job.model_dump() | {"kernel": kernel})


def rules(report: TemplateReport) -> set[str]:
    """Names of the rules that were applied."""
    return {a.rule for a in report.template.applied}


WITH_MACROS = {
    "an index": ("#define AT(p, i) p[(i)]", "if (i < n) AT(y, i) = 2.0f * AT(x, i);"),
    "an assignment": ("#define DOUBLE(c, a) c = 2.0f * a", "if (i < n) { DOUBLE(y[i], x[i]); }"),
    "a coordinate": ("#define HERE get_global_id(0)", "if (HERE < n) y[HERE] = 2.0f * x[HERE];"),
    "statements": (
        "#define TWICE(c, a) do { float t = a; c = t + t; } while (0)",
        "if (i < n) { TWICE(y[i], x[i]); }",
    ),
    "a chosen branch": (
        "#define PRECISION 32\n#if PRECISION == 64\n#define PUT(c, a) c = 3 * a\n#else\n"
        "#define PUT(c, a) c = 2 * a\n#endif",
        "if (i < n) { PUT(y[i], x[i]); }",
    ),
    "a local": ("#define IN x[i]\n#define OUT y[i]", "if (i < n) OUT = 2.0f * IN;"),
}


@pytest.mark.parametrize("form", WITH_MACROS)
def test_a_template_of_a_kernel_with_macros_is_right(form: str, tmp_path: Path) -> None:
    job = job_of(*WITH_MACROS[form])
    report = make_template(job)
    assert "elements_per_thread" in rules(report), report.declined
    template = report.template
    cases = [
        OpenClCase(form, job, template.configured(c), workload)
        for workload in job.workloads
        for c in feasible(template, workload, seed=3, count=5)
    ]
    assert run_opencl(cases, tmp_path) == []


def test_macros_that_no_rule_needs_stay() -> None:
    macros, body = "#define TWICE(a) (2.0f * (a))", "if (i < n) y[i] = TWICE(x[i]);"
    report = make_template(job_of(macros, body))
    assert "elements_per_thread" in rules(report)
    assert "y[i] = TWICE(x[i]);" in report.template.kernel.text


def test_a_kernel_that_no_rule_changes_stays_as_it_is() -> None:
    job = job_of("#define PUT(c, a) c = a", "barrier(CLK_LOCAL_MEM_FENCE); PUT(y[i], x[i]);")
    alone = job.model_copy(update={"rewrite": job.rewrite.model_copy(update={"allow": ("unroll",)})})
    report = make_template(alone)
    assert report.template.kernel.text == job.kernel.text
    assert not report.template.applied


@pytest.mark.parametrize(
    ("macros", "body", "reason"),
    [
        (
            "#ifdef cl_khr_fp64\n#define PUT(c, a) c = a\n#else\n#define PUT(c, a) c += a\n#endif",
            "if (i < n) { PUT(y[i], x[i]); }",
            "the macro PUT assigns",
        ),
        (
            "#ifdef cl_khr_fp64\n#define NEXT y[i + 1]\n#else\n#define NEXT y[i + 2]\n#endif",
            "if (i < n) y[i] = x[i] + NEXT;",
            "the macro NEXT reads memory",
        ),
        (
            "#ifdef cl_khr_fp64\n#define MORE y[i] = 2\n#else\n#define MORE y[i] = 3\n#endif",
            "if (i < n) { y[i] = x[i]; MORE; }",
            "the macro MORE assigns",
        ),
    ],
)
def test_a_reason_names_the_macro(macros: str, body: str, reason: str) -> None:
    report = make_template(job_of(macros, body))
    assert "elements_per_thread" not in rules(report)
    assert any(d.rule == "elements_per_thread" and reason in d.reason for d in report.declined), (
        report.declined
    )


@pytest.mark.parametrize(
    "call",
    [
        "nan(0u)",
        "(float)any((int2)(i, n))",
        "(float)all((int2)(i, n))",
        "bitselect(x[i], 1.0f, 2.0f)",
        "select(x[i], 1.0f, isnan(x[i]))",
        "convert_float(i)",
        "as_float(i)",
        "lgamma(x[i])",
        "fdim(x[i], 1.0f)",
    ],
)
def test_functions_of_opencl_are_known(call: str) -> None:
    assert "elements_per_thread" in rules(make_template(job_of("", f"if (i < n) y[i] = {call};")))


@pytest.mark.parametrize("call", ["frexp(x[i], &e)", "remquo(x[i], 2.0f, &e)", "lgamma_r(x[i], &e)"])
def test_a_second_result_through_a_pointer_is_an_assignment(call: str) -> None:
    report = make_template(job_of("", f"int e; if (i < n) y[i] = {call} + e;"))
    assert "elements_per_thread" in rules(report)
    pointed = f"if (i < n) y[i] = {call.replace('&e', '(__global int *)y + i')};"
    draft = first_draft(job_of("", pointed))
    assert any(a.writes and a.node.type == "call_expression" for a in draft.facts.accesses(draft.source.body))


@pytest.mark.parametrize("call", ["async_work_group_copy(l, x, 1, 0)", "write_imagef(x, i, i)"])
def test_copies_of_a_group_and_writes_of_images_are_not(call: str) -> None:
    report = make_template(job_of("", f"if (i < n) {{ {call}; y[i] = x[i]; }}"))
    assert "elements_per_thread" not in rules(report)


def test_a_macro_that_has_the_name_of_a_function_is_no_function() -> None:
    macros = "#ifdef cl_khr_fp64\n#define fract(a, b) *(b) = a\n#else\n#define fract(a, b) *(b) = 1\n#endif"
    report = make_template(job_of(macros, "if (i < n) fract(x[i], y + i + 1);"))
    assert "elements_per_thread" not in rules(report)


ROWS = """{head}
__kernel void scale(__global const {kind} *x, __global {kind} *y, const int n) {{
  int row = get_group_id(0);
  for (int i = get_local_id(0); i < n; i += get_local_size(0))
    y[row * n + i] = 2.0f * x[row * n + i];
}}
"""


@pytest.mark.parametrize(
    ("head", "kind", "wide"),
    [
        ("", "float", True),
        ("typedef float real;", "real", True),
        ("typedef float base;\ntypedef base real;", "real", True),
        ("#define real float", "real", True),
        ("typedef float4 real;", "real", False),
        ("#ifdef cl_khr_fp64\ntypedef double real;\n#else\ntypedef float real;\n#endif", "real", False),
        ("typedef struct { float a; } real;", "real", False),
    ],
)
def test_a_typedef_is_the_type_that_it_names(head: str, kind: str, wide: bool) -> None:
    job = copying("opencl", LISTED)
    kernel = job.kernel.model_dump() | {"source": ROWS.format(head=head, kind=kind)}
    kernel["launch"] = {"grid": ["n"], "block": ["64"]}
    report = make_template(Job.model_validate(job.model_dump() | {"kernel": kernel}))
    assert ("vector_width" in rules(report)) == wide, report.declined
