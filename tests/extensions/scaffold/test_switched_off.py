"""Kernels that a conditional leaves out: the job and `validate` say which, and what puts them in."""

from pathlib import Path

import pytest

from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.extensions.scaffold.reading.switched_off import switched_off
from warpsmith.extensions.scaffold.source_checks.signature import signature_findings
from warpsmith.job_files.jobfile import load_job
from warpsmith.source.kernels.kernel_definitions import Dialect, find_kernels

ROWS = "__kernel void rows(__global float *x) { x[get_global_id(0)] = 1.0f; }\n"
PLAIN = "__kernel void plain(__global float *x) { x[get_global_id(0)] = 2.0f; }\n"


def said(text: str, *headers: str, **given: str) -> tuple[str, str] | None:
    """Condition and options of the switch of kernel `rows`; None without one."""
    (kernel,) = (k for k in find_kernels(text, Dialect.OPENCL, given, headers) if k.name == "rows")
    switch = switched_off(text, kernel.line, given, headers)
    return None if switch is None else (switch.condition, switch.options)


@pytest.mark.parametrize(
    ("before", "condition", "options"),
    [
        ("#ifdef LMEM\n", "#ifdef LMEM", "-DLMEM=1"),
        ("#if BOX == 2\n", "#if BOX == 2", "-DBOX=2"),
        ("#if defined(A) && B > 7\n", "#if defined(A) && B > 7", "-DA=1 -DB=8"),
        ("#ifndef A\nint a;\n#else\n", "#ifndef A ... #else", "-DA=1"),
        ("#if MODE == 0\nint a;\n#elif MODE == 3\n", "#elif MODE == 3", "-DMODE=3"),
        ("#ifndef MODE\n#define MODE 1\n#endif\n#if MODE == 0x10\n", "#if MODE == 0x10", "-DMODE=16"),
        ("#ifdef A\n#endif\n#if A\n", "#if A", "-DA=1"),
        ("#if 0\n", "#if 0", ""),
        ("#define MODE 1\n#if MODE == 2\n", "#if MODE == 2", ""),
    ],
)
def test_the_condition_and_the_macros_that_meet_it(before: str, condition: str, options: str) -> None:
    text = f"{before}{ROWS}#endif\n"
    assert said(text) == (condition, options)
    if options:
        given = dict(o.removeprefix("-D").split("=") for o in options.split())
        assert said(text, **given) is None


def test_an_outer_conditional_counts_as_well() -> None:
    text = f"#ifdef A\n#if B == 2\n{ROWS}#endif\n#endif\n"
    assert said(text) == ("#ifdef A", "-DA=1 -DB=2")
    assert said(text, B="2") == ("#ifdef A", "-DA=1")


@pytest.mark.parametrize(
    "before",
    [
        "#if __OPENCL_VERSION__ >= 200\n",
        "#ifdef cl_khr_fp64\n",
        "#if SIZE(3) > OTHER\n",
        "#ifndef GUARD\n#define GUARD\n",
        "#ifdef __cplusplus\nint a;\n#else\n",
    ],
)
def test_nothing_is_said_of_what_is_not_sure(before: str) -> None:
    assert said(f"{before}{ROWS}#endif\n") is None


def test_headers_have_a_say() -> None:
    assert said(f"#ifdef LMEM\n{ROWS}#endif\n", "#define LMEM 1\n") is None


def test_of_two_definitions_the_one_that_is_compiled_is_taken(tmp_path: Path) -> None:
    source = tmp_path / "rows.cl"
    source.write_text(f"#ifdef WIDE\n{ROWS.replace('float', 'double')}#else\n{ROWS}#endif\n")
    target = tmp_path / "rows.yaml"
    for defines, line, dtype in (((), 4, "float32"), (("WIDE",), 2, "float64")):
        target.write_text(scaffold([source], target, InitOptions(defines=defines)))
        assert f"(line {line})" in target.read_text()
        assert load_job(target).kernel.arguments[0].dtype.value == dtype


def test_the_job_and_its_check_name_the_switch(tmp_path: Path) -> None:
    source = tmp_path / "k.cl"
    source.write_text(f"{PLAIN}\n#if BOX == 2\n{ROWS}#endif\n")
    target = tmp_path / "job.yaml"
    target.write_text(scaffold([source], target, InitOptions(entry="rows")))
    words = "`#if BOX == 2` (line 3) leaves rows out; -DBOX=2 puts it in"
    assert words in target.read_text()
    findings = [f for f in signature_findings(load_job(target)) if f.is_error]
    assert [(f.field, f.message) for f in findings] == [("kernel.options", words)]
    target.write_text(scaffold([source], target, InitOptions(entry="rows", defines=("BOX=2",))))
    assert "leaves rows out" not in target.read_text()
    assert not [f for f in signature_findings(load_job(target)) if f.is_error]
    tuned = (
        scaffold([source], target, InitOptions(entry="rows")) + "parameters:\n  - {name: BOX, values: [2]}\n"
    )
    target.write_text(tuned)
    assert not [f for f in signature_findings(load_job(target)) if f.is_error]
