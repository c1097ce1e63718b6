"""A tuned kernel in a program of PyOpenCL, on PoCL."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

from tests.unit.cli.test_shape_lookup import tuned
from warpsmith.backends.opencl.platforms import devices
from warpsmith.domain.device import Backend
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.result import Result
from warpsmith.extensions.clients.python.tuned_kernel import KernelLaunch, TunedKernel

OWN = Result(tuned()).kernel_for(n=65536)
SUMS = """
#include "parts/half.h"
__kernel void parts(__global const float* x, __local float* tile, __global float* part, int n) {
  int i = get_local_id(0);
  tile[i] = get_global_id(0) < n ? x[get_global_id(0)] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = 32; s > 0; s /= 2) { if (i < s) tile[i] += tile[i + s]; barrier(CLK_LOCAL_MEM_FENCE); }
  if (i == 0) part[get_group_id(0)] = tile[0];
}
__kernel void whole(__global const float* part, __global float* y, float scale) {
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += part[i];
  *y = HALF * scale * sum;
}
"""


def launch(entry: str, arguments: tuple[str, ...], grid: int, block: int, *local: int) -> KernelLaunch:
    """A launch along x."""
    one = (1, 1, 1)
    return KernelLaunch(entry, arguments, (grid, 1, 1), (block, 1, 1), 0, local, one, False)


SEQUENCE = TunedKernel(
    dimensions={"n": 250},
    is_tuned=True,
    backend=Backend.OPENCL,
    source=SUMS,
    defines={},
    configuration={},
    options=("-cl-std=CL1.2",),
    files={"parts/half.h": "#define HALF 0.5f\n"},
    launches=(
        launch("parts", ("x", "tile", "part", "n"), 4, 64, 256),
        launch("whole", ("part", "y", "scale"), 1, 1),
    ),
    scratch_bytes=(16,),
    scratch={"part": 16},
    buffer_bytes={"x": 1000, "y": 4},
    by_value={"n": np.int32(250), "scale": np.float32(1)},
)


@pytest.fixture(scope="module")
def queue() -> Any:
    """A queue of the first device."""
    return cl.CommandQueue(cl.Context(devices()[:1]))


def test_it_is_called_with_buffers_and_fills_in_the_numbers(queue: Any) -> None:
    x = np.random.default_rng(0).random(65536, np.float32)
    given, y = cl_array.to_device(queue, x), cl_array.zeros(queue, 65536, np.float32)
    run = OWN.compile(queue)
    run(given, y).wait()
    assert np.array_equal(y.get(), 2 * x)
    y.fill(0)
    run(given.data, y.data, n=10).wait()
    assert np.array_equal(y.get(), np.where(np.arange(65536) < 10, 2 * x, 0))


def test_a_sequence_has_its_local_memory_scratch_and_headers(queue: Any) -> None:
    x = np.random.default_rng(0).random(250, np.float32)
    run = SEQUENCE.compile(queue.context)
    y = cl_array.zeros(run.queue, 1, np.float32)
    run(cl_array.to_device(run.queue, x), y, scale=3).wait()
    assert y.get()[0] == pytest.approx(1.5 * x.sum(), rel=1e-5)


@pytest.mark.parametrize("given", [3, None, np.zeros(4), cl])
def test_what_is_no_queue_is_refused_with_the_way_out(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"queue: is .* give a queue or a context of PyOpenCL; elsewhere"):
        OWN.compile(given)


def test_arguments_of_other_kinds_are_refused(queue: Any) -> None:
    taken = launch("k", ("x", "pair", "y", "scale"), 1, 1)
    with pytest.raises(InvalidInput, match="kernel: pair: no buffer, number or local memory; launch"):
        replace(SEQUENCE, launches=(taken,)).compile(queue)


def test_wrong_buffers_are_named(queue: Any) -> None:
    run = SEQUENCE.compile(queue)
    x, y = (cl_array.zeros(queue, size, np.float32) for size in (250, 1))
    for buffers, values, words in (
        ((x,), {}, r"buffers: 1 are given; the kernel takes 2 \(x, y\)"),
        ((x, np.zeros(1)), {}, "y: is of the type ndarray; give a Buffer or an array of PyOpenCL"),
        ((y, x), {}, "x: has 4 bytes; for these dimensions it needs 1000"),
        ((x, y), {"part": 1}, r"part: is none of the numbers \(n, scale\)"),
    ):
        with pytest.raises(InvalidInput, match=words):
            run(*buffers, **values)
