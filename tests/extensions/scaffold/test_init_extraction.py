"""`init` on files that do not compile as they lie: what is missing is found beside them, or left behind."""

from pathlib import Path

import pytest

from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.command.init_trials import tried_scaffold
from warpsmith.job_files.jobfile import JobFile
from warpsmith.settings import Settings

SETTINGS = Settings(_env_file=None)


def made(source: Path, entry: str) -> tuple[str, Job]:
    """The job file for a kernel, and the job; the kernel must compile here."""
    target = source.with_name("job.yaml")
    text, outcome = written(source, target, entry)
    job = JobFile.parsed(target, text).job()
    assert outcome is not None and not isinstance(outcome, Rejected), outcome
    return text, job


def written(source: Path, target: Path, entry: str) -> tuple[str, Compiled | Rejected | None]:
    """The job file for a kernel, and what the compiler says of its kernel."""
    with JobCompiler(SETTINGS) as compiler:
        text = tried_scaffold([source], target, InitOptions(entry), compiler)
        return text, compiler(JobFile.parsed(target, text).job())


def repository(folder: Path, **files: str) -> Path:
    """A checkout with these files by path, `__` for a slash and `_dot_` for a dot."""
    (folder / ".git").mkdir()
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_types_and_values_come_from_files_near_the_kernel(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        kernels__deep__scale_dot_cl="__kernel void scale(__global real *x, const real f) {\n"
        "  int i = get_global_id(0);\n  if (i < ROWS * COLUMNS) x[i] = twice(f) * x[i];\n}\n",
        kernels__common_dot_cl="typedef float real;\nreal twice(real v) { return 2 * v; }\n",
        host__main_dot_cpp="static constexpr auto ROWS = 19;\nstatic constexpr auto COLUMNS = ROWS * 2;\n",
    )
    text, job = made(root / "kernels/deep/scale.cl", "scale")
    assert "typedef float real;" in job.kernel.text and "real twice(real v)" in job.kernel.text
    assert set(job.kernel.options) == {"-DROWS=19", "-DCOLUMNS=38"}
    assert "# ROWS=19 as main.cpp has it." in text and "# real is as common.cl has it." in text


def test_the_error_of_another_kernels_branch_stays_behind(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        k_dot_cl="__kernel void a(__global int *x) { x[get_global_id(0)] = 1; }\n"
        '#ifndef SIZE\n#error "give SIZE"\n#endif\n'
        "__kernel void b(__global int *x) { x[get_global_id(0)] = SIZE; }\n",
    )
    text, job = made(root / "k.cl", "a")
    assert "#error" not in job.kernel.text and "SIZE" not in job.kernel.text
    assert "# Taken out of k.cl; 1 functions are left behind." in text


def test_a_type_that_nothing_declares_is_a_guess_that_is_marked(tmp_path: Path) -> None:
    root = repository(
        tmp_path, k_dot_cl="__kernel void a(__global T *x, const T v) { x[get_global_id(0)] = v; }\n"
    )
    text, job = made(root / "k.cl", "a")
    assert job.kernel.options == ("-DT=float",)
    assert "# TODO: the host program defines T; float is a guess." in text


def test_the_name_of_a_local_is_never_made_a_macro(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        k_dot_cl="__kernel void a(__global int *x) { missing_t size = 3; x[size] = size; }\n",
        host_dot_cpp="const int size = 4;\n",
    )
    target = root / "job.yaml"
    text, _ = written(root / "k.cl", target, "a")
    assert "-Dsize" not in text


def test_host_code_and_host_headers_of_an_extension_stay_behind(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        ops__norm_dot_cu='#include <ATen/ATen.h>\n#include <cublasLt.h>\n#include "helper_cuda.h"\n'
        '#include "values.h"\n'
        "template <typename scalar_t>\n"
        "__global__ void scale(scalar_t* x, int n) {\n"
        "  int i = blockIdx.x * THREADS + threadIdx.x;\n"
        "  if (i < n) x[i] = x[i] * scalar_t(c10::Half(2.0f));\n}\n"
        "at::Tensor run(at::Tensor x) {\n"
        '  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "scale", [&] {\n'
        "    scale<scalar_t><<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<scalar_t>(), x.numel()); });\n"
        "  return x;\n}\n",
        ops__values_dot_h="#pragma once\n#define THREADS 64\n",
    )
    text, job = made(root / "ops/norm.cu", "scale")
    assert job.kernel.entry == "scale<half>"
    assert "at::Tensor" not in job.kernel.text and "#define THREADS 64" in job.kernel.text
    assert "ATen/ATen.h, cublasLt.h, helper_cuda.h" in text


def test_without_a_compiler_the_first_guesses_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(
        tmp_path, k_dot_cl="__kernel void a(__global float *x) { x[get_global_id(0)] = LIMIT; }\n"
    )
    monkeypatch.setattr(JobCompiler, "__call__", lambda self, job: None)
    text, _ = written(root / "k.cl", root / "job.yaml", "a")
    assert "source_file: k.cl" in text


def test_what_only_the_host_program_defines_is_a_guess_of_its_kind(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        k_dot_cl="REAL3 shifted(REAL3 v) { REAL3 r = v + width; return r; }\n"
        "__kernel void a(__global REAL* x, __global const REAL4* y) {\n"
        "  int i = get_global_id(0);\n  x[i] = shifted(y[i].xyz).x;\n}\n",
    )
    text, job = made(root / "k.cl", "a")
    assert set(job.kernel.options) == {"-DREAL=float", "-DREAL3=float3", "-DREAL4=float4", "-Dwidth=16"}
    assert "# TODO: the host program defines width; 16 is a guess." in text


def test_the_conditional_around_a_kernel_is_switched_on(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        k_dot_cl="#if defined(ROUTINE_A) && !defined(ROUTINE_B)\n#if SIDE == 2\n"
        "__kernel void a(__global int *x) { x[get_global_id(0)] = 1; }\n#endif\n#endif\n",
    )
    text, job = made(root / "k.cl", "a")
    assert set(job.kernel.options) == {"-DROUTINE_A=1", "-DSIDE=2"}
    assert "-DROUTINE_A=1" in text and "puts it in." in text


def test_an_error_of_the_source_tells_the_values_of_macros(tmp_path: Path) -> None:
    root = repository(
        tmp_path,
        k_dot_cl="__kernel void a(__global int *x) {\n  int i = get_global_id(0);\n"
        "#if TILE == 4\n  x[i] = 4;\n"
        '#elif TILE == 2\n  x[i] = 2;\n#else\n  #error "no such tile"\n#endif\n}\n',
    )
    text, job = made(root / "k.cl", "a")
    assert job.kernel.options == ("-DTILE=4",)
    assert "# TODO: TILE=4 is a guess, with which the source has no #error." in text
