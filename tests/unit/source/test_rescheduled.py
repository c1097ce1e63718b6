"""Sources with pauses before writes and with reversed work-items."""

import pytest

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.source.tree.rescheduled import rescheduled

OPENCL = """#define ADD(a, v) a += v
__kernel void total(__global const int* x, __global int* sum, __global int* y, const int n) {{
  __local int part[64];
  part[get_local_id(0)] = x[get_global_id(0)];
  __global int* alias = sum + 1;
  {statement};
  y[get_global_id(0)] = 1;
}}
"""


def paused(statement: str, *, reverse: bool = False) -> str:
    """The text of a kernel with this statement; its second argument has pauses of 7 turns."""
    text = OPENCL.format(statement=statement)
    return rescheduled(text, Backend.OPENCL, "total", (), [0, 7, 9, 0], reverse=reverse)


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("sum[0] = sum[0] + 1", "(sum[0] + 1)"),
        ("sum[0] += part[0]", "(sum[0]) + ( part[0])"),
        ("ADD(sum[0], 3)", "(sum[0]) + ("),
        ("y[sum[0]++] = 1", "sum[0]; ws_pause(7); sum[0] = ws_value + 1; ws_value"),
        ("if (sum[0] < 3) sum[0] = 3", "(3)"),
        ("int was = atomic_or(sum, 0); atomic_xchg(sum, was + 1)", "(was + 1)"),
        ("*alias = *alias + 1", "(*alias + 1)"),
    ],
)
def test_an_update_of_memory_without_an_atomic_pauses_between_reading_and_writing(
    statement: str, kept: str
) -> None:
    """What was read is kept over the pause."""
    text = paused(statement)
    assert f"ws_value = {kept}" in text
    assert text.count("ws_pause(7);") == 1


@pytest.mark.parametrize(
    "statement", ["atomic_add(&sum[0], 1)", "part[0] += 1", "int own[2]; own[0] += 1", "int i = 0; i++"]
)
def test_what_no_other_group_can_lose_has_no_pause(statement: str) -> None:
    """Atomics, memory of a group or an item, and outputs that are never read."""
    assert "ws_value" not in paused(statement)


def test_items_are_reversed_unless_their_order_means_something() -> None:
    """Lanes of a subgroup have an order."""
    assert "#define get_local_id(d)" in paused("part[0] = 1", reverse=True)
    assert "#define get_local_id(d)" not in paused("part[0] = 1")
    assert "#define get_local_id(d)" not in paused("part[0] = sub_group_reduce_add(1)", reverse=True)


def test_a_cuda_kernel_pauses_in_its_first_block() -> None:
    """Threads of CUDA keep their order, since warps need it. NVRTC compiles every form of pause."""
    lines = "sum[0] += 1; sum[1] = sum[0]++ + --sum[2]; atomicExch(sum, sum[1] + 1); f[0] = f[1];"
    text = f"__global__ void total(int* sum, float4* f) {{ {lines} }}"
    made = rescheduled(text, Backend.CUDA, "total", (), [7, 7], reverse=True)
    assert "auto ws_value = (sum[0]) + ( 1)" in made and made.count("ws_pause(7)") == 6
    assert "blockIdx.x + blockIdx.y + blockIdx.z == 0" in made
    assert "#define" not in made
    request = CompileRequest(Backend.CUDA, made, "total", (), (), "nvrtc", "sm_90", 0)
    compiled = compile_cuda(request)
    assert isinstance(compiled, Compiled), compiled


def test_a_source_without_its_kernel_cannot_be_rescheduled() -> None:
    """The reason names the kernel."""
    with pytest.raises(LookupError, match="total"):
        rescheduled("int x;", Backend.CUDA, "total", (), [], reverse=True)
