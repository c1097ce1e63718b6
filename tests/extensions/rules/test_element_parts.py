"""Whatever an assignment's left side ends in, its root is written: readers of roles and rules agree."""

import re
from itertools import product

import pytest

from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.templater import make_template
from warpsmith.extensions.scaffold.reading.pointer_usage import pointer_usage
from warpsmith.extensions.scaffold.source_checks.signature import signature_findings
from warpsmith.source.tree.syntax_tree import Source

STRUCTS = """
struct C { float re, im; };
struct Q { int q[4]; };
typedef int Row[4];
struct S { int a[4]; int b[2][2]; C link[4]; C p; Q in[2]; Row row; int m; int* elsewhere; };
__device__ void set(int* p) { *p = 1; }
"""
HOLDERS = ("c[i].", "(c[i]).", "(*c).", "c->", "(c + i)->", "(*(c + i)).", "c[i + 1].", "d->", "r.")
PARTS = ("a[0]", "a[i]", "b[1][i]", "m", "in[1].q[2]", "in[i].q[c[0].m]", "row[2]", "a[c[i].a[1]]")
WRITES = ("{} = 1;", "{} += 1;", "{}++;", "--{};", "({}) <<= 1;")
ADDRESSES = (
    "atomicAdd(&{}, 1);",
    "set(&{});",
    "int* e = &{}; *e = 1;",
    "*(int4*)&{} = z;",
    "int& f = {}; f = 1;",
)
DECAYED = (
    "int* e = c[i].a; e[1] = 2;",
    "set(c[i].a);",
    "set(c[i].row);",
    "*(c[i].a + 1) = 2;",
    "*c[i].a = 2;",
    "reinterpret_cast<int*>(c[i].a)[0] = 1;",
    "i[c[0].a] = 1;",
    "auto& e = c[i].a; e[0] = 1;",
    "(i > 1 ? c[i] : c[0]).a[1] = 1;",
)
READS = (
    *(f"m = {holder}{part};" for holder, part in product(HOLDERS[:5], PARTS)),
    "const S& e = c[i]; m = e.a[1];",
    "S t = c[i]; t.a[0] = 1; m = t.a[0];",
    "c[i].elsewhere[0] = 1;",
)


def written_in(statements: str) -> set[str | None]:
    """Roots that the rules take for written in a kernel with the buffer `c`; None: an unclear one."""
    head = "__global__ void k(S* c, int i) { int m; int4 z; S* d = c + i; S& r = c[i]; "
    source = Source(STRUCTS + head + statements + " }", Backend.CUDA, "k")
    facts = Facts(source, ("32",), "k")
    return {None if a.root is None else a.root.name for a in facts.accesses(source.body) if a.writes}


@pytest.mark.parametrize("write", (*WRITES, *ADDRESSES))
def test_a_write_to_a_part_is_one_to_its_root(write: str) -> None:
    for holder, part in product(HOLDERS, PARTS):
        text = write.format(holder + part)
        assert "c" in written_in(text) or (holder == "r." and None in written_in(text)), text
        if holder not in ("d->", "r."):
            usage = pointer_usage("{ " + text + " }", "c")
            assert usage.is_written or usage.is_passed_on, text


@pytest.mark.parametrize("text", DECAYED)
def test_an_array_of_an_element_may_be_written_through_its_address(text: str) -> None:
    assert "c" in written_in(text)
    usage = pointer_usage("{ " + text + " }", "c")
    assert usage.is_written or usage.is_passed_on or text.startswith(("set", "i[", "(i"))


def test_what_is_only_read_stays_so() -> None:
    for text in READS:
        assert "c" not in written_in(text), text


def test_a_local_object_changes_with_its_parts_and_not_with_what_they_point_to() -> None:
    head = "__global__ void k(S s, int i) { S t = s; "
    source = Source(STRUCTS + head + "t.in[1].q[0] = 1; s.elsewhere[i] = 1; }", Backend.CUDA, "k")
    facts = Facts(source, ("32",), "k")
    changed = {v.name for v in source.variables if facts.assigned(v)}
    assert "t" in changed and "s" not in changed


KERNEL = """
struct C {float re, im;}; struct S {C link[4]; int pad;};
__global__ void k(const S* a, S* c, int n) {
  int i = blockIdx.x*blockDim.x+threadIdx.x; C v = {0, 0};
  if (i<n) { v.re = a[i].link[1].im; c[i].link[0] = v; }
}
"""


def job(source: str = KERNEL) -> Job:
    """A job of a kernel with two buffers of 36 bytes an element."""
    fields = {"dtype": "uint8", "shape": ["n * 36"], "draw": {"distribution": "constant", "low": 0}}
    return Job.model_validate(
        {
            "name": "k",
            "kernel": {
                "backend": "cuda",
                "source": source,
                "entry": "k",
                "arguments": [
                    fields | {"name": "a", "role": "input"},
                    fields | {"name": "c", "role": "inout"},
                    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                ],
                "launch": {"grid": ["ceil_div(n, 256)"], "block": [256]},
            },
            "workloads": [{"dimensions": {"n": 1024}}],
        }
    )


def declared(report: TemplateReport) -> str:
    """The head of the kernel in a template, without blanks."""
    text = report.template.kernel.text
    found = re.search(r"\bk\(([^)]*)\)", text)
    assert found is not None
    return "".join(found.group(1).split())


def test_the_kernel_of_the_report_is_understood_from_its_job_to_its_template() -> None:
    report = make_template(job())
    assert "S*__restrict__c" in declared(report) and "constS*__restrict__c" not in declared(report)
    kernel = report.template.configured(report.template.space.defaults)
    assert compile_cuda(kernel.source, "k") == ""
    assert not [f for f in signature_findings(job()) if "only reads" in f.message]


HOST = {
    "address": "void h() { void (*f)(float*, float*, int) = &k; }",
    "its name": "void h() { auto f = k; }",
    "an argument": "void h() { launch((void*)k, 1); }",
    "declared before": "",
    "launched": "void h(float* x) { k<<<dim3(1), 32>>>(x, x, 1); }",
}


@pytest.mark.parametrize("how", HOST)
def test_const_does_not_change_a_type_that_the_source_relies_on(how: str) -> None:
    head = "__global__ void k(float* a, float* c, int n)"
    body = " { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i]; }\n"
    before = f"{head};\n" if how == "declared before" else ""
    found = make_template(job(before + head + body + HOST[how])).template.kernel.text
    found = found[len(before) :] if before and found.startswith(before) else found
    assert "__restrict__ a" in found
    assert ("const float* __restrict__ a" in found) == (how == "launched")
