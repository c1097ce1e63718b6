"""`warpsmith translate`: what it writes, what it refuses, and its last line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from warpsmith.cli import main
from warpsmith.cli.translate import translate
from warpsmith.cli.translated_runs import unequal
from warpsmith.domain.device import Backend
from warpsmith.jobfile import load_job
from warpsmith.sandbox.device_host import Probe
from warpsmith.settings import Settings
from warpsmith.verify.run_report import RunReport

SOURCE = """#include <cuda_bf16.h>
#include "twice.cuh"
template <typename T> __global__ void __launch_bounds__(128, 2) scale(const T* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = twice(x[i]);
}
"""
HEADER = """__device__ __nv_bfloat16 twice(__nv_bfloat16 x) {
  return __float2bfloat16(2.0f * __bfloat162float(x));
}
"""


def written(folder: Path, source: str = SOURCE, **kernel: Any) -> Path:
    """A job with its source and a header beside it."""
    (folder / "scale.cu").write_text(source)
    (folder / "twice.cuh").write_text(HEADER)
    job = {
        "name": "scale",
        "kernel": {
            "backend": "cuda",
            "source_file": "scale.cu",
            "entry": "scale<__nv_bfloat16>",
            "options": ["--use_fast_math", "--std=c++17", "-DT=__nv_bfloat16"],
            "arguments": [
                {"name": "x", "dtype": "bfloat16", "role": "input", "shape": ["n"]},
                {"name": "y", "dtype": "bfloat16", "role": "output", "shape": ["n"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            ],
            "launch": {"grid": ["ceil_div(n, 128)"], "block": [128]},
            **kernel,
        },
        "workloads": [{"dimensions": {"n": 1000}}],
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    return path


def nothing() -> Probe:
    """No devices."""
    return Probe((), {})


def ran(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `warpsmith translate`."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["translate", *(str(a) for a in arguments)])
    captured = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, captured.out, captured.err


def test_a_job_becomes_one_for_hip_that_compiles(tmp_path: Path) -> None:
    found = translate(written(tmp_path), Settings(), probe=nothing)
    assert found.is_right
    assert found.last == "compiled for sm_90; not run: no device here"
    out = tmp_path / "hip.yaml"
    out.write_text(found.text)
    kernel = load_job(out).kernel
    assert kernel.backend is Backend.HIP
    assert kernel.entry == "scale<__hip_bfloat16>"
    assert kernel.options == ("-ffast-math", "--std=c++17", "-DT=__hip_bfloat16")
    assert "__launch_bounds__(128)" in kernel.text
    assert "__nv_bfloat16" not in kernel.files["twice.cuh"]
    assert "  source: |\n" in found.text


def test_refusals_name_the_file_and_line_and_end_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(
        tmp_path, SOURCE.replace("int i =", "\n  __syncwarp(); const int i ="), options=["-lineinfo"]
    )
    code, out, err = ran(capsys, path)
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert lines[0].startswith(f"refused: {tmp_path}/scale.cu:5: __syncwarp: ")
    assert lines[1].startswith(f"refused: {path}:7: kernel.options.0: -lineinfo has no counterpart")
    assert lines[-1] == "not translated: 2 words are outside the subset"


def test_a_source_is_translated_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.cu"
    source.write_text("#include <cuda_fp16.h>\n__global__ void f(__half* y) {}\n")
    code, out, err = ran(capsys, source, "--out", tmp_path / "a.hip")
    assert (code, err) == (0, "")
    assert out.startswith("translated; not compiled and not run: a source has no launch")
    assert (tmp_path / "a.hip").read_text() == source.read_text().replace("cuda_fp16", "hip/hip_fp16")


def test_jobs_of_other_back_ends_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, backend="hip", options=[])
    code, _, err = ran(capsys, path)
    assert code == 2
    assert "kernel.backend: hip: only jobs of back end cuda are translated" in err


def test_a_kernel_that_does_not_compile_is_no_translation(tmp_path: Path) -> None:
    found = translate(written(tmp_path, SOURCE.replace("twice(x", "thrice(x")), Settings(), probe=nothing)
    assert not found.is_right
    assert found.disagreement.startswith("the CUDA kernel does not compile for sm_90: ")
    assert found.last.endswith("; not run")


@pytest.mark.parametrize(
    ("field", "kernel"),
    [
        ("kernel.includes", {"includes": ["own"]}),
        ("kernel.compiler", {"compiler": "nvcc"}),
        (
            "kernel.launch.cluster",
            {"launch": {"grid": [2], "block": [128], "cluster": [2]}},
        ),
    ],
)
def test_fields_outside_the_subset_are_refused(tmp_path: Path, field: str, kernel: dict[str, Any]) -> None:
    found = translate(written(tmp_path, **kernel), Settings(), probe=nothing)
    assert [f"{field}: " in line for line in found.refusals] == [True]


def test_reports_are_compared_by_bits_and_unwritten_elements_do_not_count() -> None:
    cuda = RunReport({"y": np.array([1.0, 2.0], np.float32)}, (), (), poison={"y": b"\1\2\3\4"})
    assert unequal(cuda, cuda) == ""
    other = RunReport({"y": np.array([1.0, -2.0], np.float32)}, (), (), poison={"y": b"\1\2\3\4"})
    assert unequal(cuda, other) == "y differs, first in element 1: 2.0 in CUDA, -2.0 in HIP"
    poisons = (b"\1\2\3\4", b"\5\6\7\x08")
    left = [
        RunReport({"y": np.frombuffer(b"\0\0\0\0" + p, np.float32)}, (), (), poison={"y": p}) for p in poisons
    ]
    assert unequal(*left) == ""
    outside = RunReport({"y": cuda.outputs["y"]}, ("x",), ())
    assert unequal(cuda, outside) == "one of them writes outside x"
