"""Kernels that macros introduce or name."""

from pathlib import Path

import pytest

from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.extensions.scaffold.source_checks.signature import signature_findings
from warpsmith.job_files.jobfile import load_job
from warpsmith.source.kernels.kernel_definitions import Dialect, find_kernels

BODY = "(__global float *x) { x[get_global_id(0)] = 1.0f; }\n"


def names(text: str, dialect: Dialect = Dialect.OPENCL, **given: str) -> list[str]:
    """Names of the kernels of a text, with macros given to the compiler."""
    return [k.name for k in find_kernels(text, dialect, given)]


@pytest.mark.parametrize(
    "text",
    [
        f"#define KERNEL __kernel\nKERNEL void fill{BODY}",
        f"#define OWN __kernel\n#define KERNEL OWN\nKERNEL void fill{BODY}",
        f"#define ENTRY __kernel __attribute__((reqd_work_group_size(8, 1, 1)))\nENTRY void fill{BODY}",
        f"#ifdef __OPENCL_VERSION__\n#define K __kernel\n#else\n#define K\n#endif\nK void fill{BODY}",
        f"#define KERNEL __kernel void\n#define FAST\nKERNEL FAST fill{BODY}",
        f"#define NAME fill\n__kernel void NAME{BODY}",
        f"#define NAME OTHER\n#define OTHER fill\n__kernel void NAME{BODY}",
    ],
)
def test_object_like_macros_of_the_file_are_seen_through(text: str) -> None:
    assert names(text) == ["fill"]


def test_macros_that_are_given_and_those_that_call_are_told_apart() -> None:
    text = f"KERNEL_FQ KERNEL_FA void NAME{BODY}"
    assert names(text) == []
    assert names(text, KERNEL_FQ="__kernel", NAME="fill") == ["fill"]
    assert names("#define MAKE __global__ void k(int n) {}\nMAKE\nvoid f(int) {}", Dialect.CUDA) == []
    assert names(f"#define KERNEL static\nKERNEL void fill{BODY}") == []


def test_a_header_beside_the_file_introduces_and_names_kernels(tmp_path: Path) -> None:
    (tmp_path / "vendor.h").write_text(
        '#ifdef IS_CUDA\n#define KERNEL_FQ extern "C" __global__\n#else\n'
        "#define KERNEL_FQ __kernel // of OpenCL\n#endif\n#define NAME \\\n  fill\n"
    )
    source = tmp_path / "fill.cl"
    source.write_text(f'#include "vendor.h"\nKERNEL_FQ void NAME{BODY}')
    target = tmp_path / "fill.yaml"
    target.write_text(scaffold([source], target, InitOptions()))
    job = load_job(target)
    assert job.kernel.entry == "fill"
    assert [f for f in signature_findings(job) if f.is_error] == []


def test_a_word_that_nothing_defines_is_named_with_what_to_give(tmp_path: Path) -> None:
    source = tmp_path / "hash.cl"
    source.write_text(
        "DECLSPEC void helper (int n) { }\nKERNEL_FQ KERNEL_FA void hash_a (KERN_ATTR ())\n{\n}\n"
        "KERNEL_FQ void declared (int n);\nstatic void plain(int n) {}\n"
    )
    target = tmp_path / "job.yaml"
    words = r"no kernel definition found; KERNEL_FQ introduces hash_a, and .* give -D KERNEL_FQ=__kernel"
    with pytest.raises(InvalidInput, match=words):
        scaffold([source], target, InitOptions())
    source.write_text("static void plain(int n) {}\n")
    with pytest.raises(InvalidInput, match=r"no kernel definition found$"):
        scaffold([source], target, InitOptions())
    source.write_text(f"KERNEL_FQ KERNEL_FA void fill{BODY}")
    scaffold([source], target, InitOptions(defines=("KERNEL_FQ=__kernel", "KERNEL_FA=")))
