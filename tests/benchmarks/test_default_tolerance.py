"""Correct kernels that sum pass their NumPy references by default, and small mistakes do not.

`benchmarks/first_hour/tolerance.py` does this with all of them.
"""

import pytest

from benchmarks.first_hour.tolerance import refusals
from benchmarks.first_hour.tolerance_kernels import EXAMPLES, MUTANTS
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.dtype import Dtype
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.session.session_ports import SessionPorts

MISTAKES = {m.name: m for m in MUTANTS}


@pytest.fixture
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


@pytest.mark.parametrize(
    ("name", "dtype", "k"),
    [
        ("gemm", Dtype.FLOAT32, 256),
        ("gemm_in_place", Dtype.FLOAT32, 1000),
        ("one_dot", Dtype.FLOAT32, 1024),
        ("stencil_sum", Dtype.FLOAT16, 500),
        ("softmax", Dtype.FLOAT16, 1024),
        ("layer_norm", Dtype.FLOAT32, 777),
    ],
)
def test_a_correct_kernel_passes_with_the_default_tolerance(
    ports: SessionPorts, name: str, dtype: Dtype, k: int
) -> None:
    assert refusals(ports, EXAMPLES[name], dtype, k, seed=5)["default_right"] == ""


def test_a_product_that_the_fixed_tolerance_refuses_is_told_what_would_pass(ports: SessionPorts) -> None:
    found = refusals(ports, EXAMPLES["gemm"], Dtype.FLOAT32, 4096, seed=5)
    assert found["default_right"] == ""
    assert "would pass, the job's is 1e-05 (rtol 0.0001)" in found["fixed_right"]


@pytest.mark.parametrize(
    "name",
    [
        "the last of 256 products is dropped",
        "a norm of 1024 divides by one less",
        "a float32 sum is done in half",
        "a softmax of 4096 drops a term of its sum",
    ],
)
def test_a_small_mistake_is_caught_as_a_jobs_own_kernel_and_as_a_candidate(
    ports: SessionPorts, name: str
) -> None:
    mistake = MISTAKES[name]
    found = refusals(ports, EXAMPLES[mistake.of], mistake.dtype, mistake.k, 5, mistake.defines)
    assert found["default_right"] == ""
    assert "is wrong" in found["default_own"]
    assert found["default_candidate"] != ""
