"""Which language a source is in, where its ending does not say."""

from pathlib import Path

import pytest

from warpsmith.domain.device import Backend
from warpsmith.job_files.kernel_sources import find_source

KERNEL = "__global__ void f(float* x) { x[threadIdx.x] = 1; }\n"


@pytest.mark.parametrize(
    ("name", "head", "backend"),
    [
        ("k.hip", "", Backend.HIP),
        ("k.cpp", "#include <hip/hip_runtime.h>\n", Backend.HIP),
        ("k.cu", '#include "hip/hip_runtime.h"\n', Backend.HIP),
        ("k.cu", "#  include <hipcub/hipcub.hpp>\n", Backend.HIP),
        ("k.cu", "#include <cuda_fp16.h>\n#include <hip/hip_runtime.h>\n", Backend.CUDA),
        ("k.cu", "// #include <hip/hip_runtime.h>\n", Backend.CUDA),
        ("k.cu", "", Backend.CUDA),
    ],
)
def test_a_source_that_includes_headers_of_hip_is_in_hip(
    tmp_path: Path, name: str, head: str, backend: Backend
) -> None:
    path = tmp_path / name
    path.write_text(head + KERNEL)
    assert find_source([path], tmp_path / "job.yaml", None, ()).dialect.backend is backend
