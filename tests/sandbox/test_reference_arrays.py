"""References on arrays of another library: what is replaced in them, and what they get and give."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.sandbox.cupy_on_numpy import stand_in
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.sandbox.children.reference_child import _BadReference, _compute
from warpsmith.sandbox.memory.device_kernels import (
    DONE,
    PARTS,
    compile_usual,
    is_complete,
    use_folder,
)
from warpsmith.sandbox.memory.reference_arrays import DeviceArrays, HostArrays
from warpsmith.verify.inputs import POOL_ELEMENTS

SHORT, LONG = 1000, POOL_ELEMENTS + 200_000
ASKED: list[str] = []


@pytest.fixture(autouse=True)
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module, asked = stand_in()
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setitem(sys.modules, "cupy.linalg", np.linalg)
    ASKED.clear()
    yield
    ASKED.extend(asked)


def plan(elements: int, dtype: Dtype = Dtype.FLOAT16, draw: Draw | None = None) -> WorkloadPlan:
    buffers = tuple(
        BufferPlan(name=name, dtype=dtype, role=role, shape=(elements,), draw=draw)
        for name, role in (("x", Role.INPUT), ("y", Role.OUTPUT))
    )
    return WorkloadPlan("n", seed=7, arguments=buffers)


def both(source: str, of: WorkloadPlan) -> tuple[Any, Any]:
    host = _compute(HostArrays(), source, "f", of, {"n": 3})["y"]
    with np.errstate(over="ignore", invalid="ignore"):  # of a cast, about which a device says nothing
        return host, _compute(DeviceArrays(0), source, "f", of, {"n": 3})["y"]


@pytest.mark.parametrize(
    "dtype", [Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT8_E4M3FN, Dtype.INT32]
)
@pytest.mark.parametrize("elements", [SHORT, LONG])
def test_inputs_are_the_same_on_both(dtype: Dtype, elements: int) -> None:
    host, there = both("def f(inputs, dims): return {'y': inputs['x'] * 2}", plan(elements, dtype))
    assert host.dtype == there.dtype
    np.testing.assert_array_equal(host, there)


@pytest.mark.parametrize("family", [f for f in Family if f is not Family.EDGE_CASE])
def test_families_are_the_same_on_both(family: Family) -> None:
    buffer = plan(LONG).buffers[0]
    host, there = HostArrays(), DeviceArrays(0)
    np.testing.assert_array_equal(host.input(buffer, 7, 2, family), there.input(buffer, 7, 2, family))


def test_arranged_draws_are_the_same_on_both() -> None:
    of = plan(LONG, Dtype.INT32, Draw(distribution=Distribution.PERMUTATION))
    host, there = both("def f(inputs, dims): return {'y': inputs['x']}", of)
    np.testing.assert_array_equal(host, there)


IMPORTS = (
    "import numpy as np\ndef f(inputs, dims): return {'y': np.exp(inputs['x'])}",
    "import numpy\ndef f(inputs, dims): return {'y': numpy.linalg.norm(inputs['x']) + inputs['x']}",
    "from numpy import exp\ndef f(inputs, dims): return {'y': exp(inputs['x'])}",
    "from numpy.linalg import norm\ndef f(inputs, dims): return {'y': norm(inputs['x']) * inputs['x']}",
    "import numpy.linalg as la\ndef f(inputs, dims): return {'y': la.norm(inputs['x']) * inputs['x']}",
    "def f(inputs, dims):\n    import numpy as q\n    with q.errstate(all='ignore'):\n"
    "        return {'y': q.sqrt(inputs['x'])}",
    "def f(inputs, dims): return {'y': np.maximum(inputs['x'], 0)}",
    "import math\ndef f(inputs, dims): return {'y': inputs['x'] * math.pi}",
)


@pytest.mark.parametrize("source", IMPORTS)
def test_every_way_to_name_numpy_is_replaced(source: str) -> None:
    with np.errstate(invalid="ignore"):
        host, there = both(source, plan(SHORT))
    np.testing.assert_array_equal(host, there)


def test_numpy_itself_is_not_replaced_for_others() -> None:
    both(IMPORTS[0], plan(SHORT))
    assert sys.modules["numpy"] is np


def test_what_the_library_lacks_is_an_error_of_the_reference() -> None:
    source = "import numpy as np\ndef f(inputs, dims): return {'y': np.vectorize(abs)(inputs['x'])}"
    assert _compute(HostArrays(), source, "f", plan(SHORT), {})["y"].size == SHORT
    with pytest.raises(_BadReference, match="vectorize"):
        _compute(DeviceArrays(0), source, "f", plan(SHORT), {})


def test_finite_results_stay_finite() -> None:
    source = "def f(inputs, dims): return {'y': inputs['x'] * 0 - 1e300}"
    host, there = both(source, plan(SHORT))
    assert there.dtype == np.float32
    assert np.isfinite(there).all()
    np.testing.assert_array_equal(host, there)


def test_memory_is_given_back() -> None:
    module, asked = stand_in()
    sys.modules["cupy"] = module
    DeviceArrays(0).done()
    assert asked == ["use", "free"]


def test_every_usual_call_is_one_that_numpy_has() -> None:
    whole = compile_usual(np)
    assert whole > 500
    assert sum(compile_usual(np, part, 3) for part in range(3)) == whole


def test_a_call_that_is_lacking_leaves_the_others() -> None:
    module, _ = stand_in()
    lacking = SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if name != "exp2"})
    assert 0 < compile_usual(lacking) < compile_usual(module)


def test_a_library_without_kept_kernels_compiles_each(tmp_path: Path) -> None:
    assert not use_folder(tmp_path)
    assert not is_complete(tmp_path)
    for part in range(PARTS):
        (tmp_path / DONE.format(part, PARTS)).touch()
    assert is_complete(tmp_path)
