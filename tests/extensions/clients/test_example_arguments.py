"""What an array says of an argument: its type, and how others like it are drawn."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.domain.arguments.draw import Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.example_arguments import Example, draw_of, is_example
from warpsmith.extensions.clients.python.job_of import TuneCall, job_of

Array = np.ndarray[Any, Any]


class Tensor:
    """What torch has, as far as it is asked: dtypes without a name, data behind `detach().cpu().numpy()`."""

    class _Type:
        def __init__(self, text: str) -> None:
            self._text = text

        def __str__(self) -> str:
            return self._text

    def __init__(self, values: Array, dtype: str) -> None:
        self._values = values
        self.shape = values.shape
        self.dtype = Tensor._Type(dtype)

    def detach(self) -> "Tensor":
        """Itself."""
        return self

    def cpu(self) -> "Tensor":
        """Itself."""
        return self

    def float(self) -> "Tensor":
        """In a type that NumPy has."""
        return Tensor(self._values.astype(np.float32), "torch.float32")

    def numpy(self) -> Array:
        """The data; as torch does, not for bfloat16."""
        if "bfloat16" in str(self.dtype):
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._values


class OnDevice:
    """What CuPy has, as far as it is asked: NumPy's dtypes, data behind `get()`."""

    def __init__(self, values: Array) -> None:
        self._values = values
        self.shape = values.shape
        self.dtype = values.dtype

    def __array__(self, *_: object, **__: object) -> Array:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self) -> Array:
        """The data on the host."""
        return self._values


def drawn(array: Any, **dimensions: int) -> dict[str, Any]:
    """The draw of an example, which the job form accepts."""
    found = draw_of(Example("x", array), dimensions)
    Draw.model_validate(found)
    return found


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.zeros(2, np.float16), Dtype.FLOAT16),
        (np.zeros(2, bool), Dtype.BOOL),
        (np.zeros(2, np.uint64), Dtype.UINT64),
        (np.zeros(2, ml_dtypes.bfloat16), Dtype.BFLOAT16),
        (np.zeros(2, ml_dtypes.float8_e4m3fn), Dtype.FLOAT8_E4M3FN),
        (Tensor(np.zeros(2), "torch.bfloat16"), Dtype.BFLOAT16),
        (Tensor(np.zeros(2), "torch.float8_e5m2"), Dtype.FLOAT8_E5M2),
        (OnDevice(np.zeros(2, np.int8)), Dtype.INT8),
    ],
)
def test_the_type_of_an_example(array: Any, dtype: Dtype) -> None:
    assert is_example(array)
    assert Example("x", array).dtype is dtype


def test_numbers_are_no_arrays() -> None:
    assert not any(map(is_example, (np.float32(1), 3, None, "n", [1, 2])))


@pytest.mark.parametrize(
    ("dtype", "words"),
    [(np.complex64, "which no argument can have; use its real"), ("U3", "str96, which no")],
)
def test_a_type_that_no_argument_can_have_is_named(dtype: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=rf"arguments\.x: the example has .*{words}"):
        _ = Example("x", np.zeros(2, dtype)).dtype


def test_floats_around_zero_are_normal_with_the_same_moments() -> None:
    values = np.random.default_rng(1).normal(3, 2, 4096).astype(np.float32)
    assert drawn(values) == {"distribution": "normal", "mean": 3.0, "std": 2.0}
    assert str(drawn(values - 3.01)["mean"]) == "0.0", "no -0.0"
    assert drawn(values / 1000 - 0.01) == {"distribution": "normal", "mean": -0.007, "std": 0.002}


@pytest.mark.parametrize("shift", [0.5, -9.5])
def test_floats_on_one_side_of_zero_are_uniform_from_least_to_greatest(shift: float) -> None:
    values = np.linspace(0, 9, 64) + shift
    assert drawn(values) == {"distribution": "uniform", "low": shift, "high": 9 + shift}


def test_what_is_no_finite_number_is_left_out_of_the_statistics() -> None:
    assert drawn(np.array([np.nan, 1, 3, np.inf])) == {"distribution": "uniform", "low": 1, "high": 3}
    with pytest.raises(InvalidInput, match=r"arguments\.x: the example has no finite number"):
        drawn(np.full(3, np.nan))


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_equal_floats_are_a_constant(value: float) -> None:
    assert drawn(np.full(3, value, np.float32)) == {"distribution": "constant", "low": value}


def test_integers_lie_from_least_to_greatest() -> None:
    assert drawn(np.array([[5, 2], [9, 2]], np.int32)) == {"distribution": "integers", "low": 2, "high": 10}
    assert drawn(np.array([True, False])) == {"distribution": "integers", "low": 0, "high": 2}
    assert drawn(np.full(9, 7)) == {"distribution": "constant", "low": 7}


def test_an_upper_bound_that_is_one_dimension_becomes_it() -> None:
    indices = np.array([0, 4, 1, 9], np.int32)
    assert drawn(indices, vocabulary=10, n=4)["high"] == "vocabulary"
    assert drawn(indices, vocabulary=10, heads=10)["high"] == 10


def test_an_order_is_kept() -> None:
    order = np.array([3, 1, 0, 2, 7, 5, 6, 4], np.int32)
    assert drawn(order) == {"distribution": "permutation", "low": 0}
    begins = np.array([0, 3, 3, 5, 9, 9, 12, 20], np.int64)
    assert drawn(begins, nonzeros=20) == {
        "distribution": "offsets",
        "low": 0,
        "high": "nonzeros",
        "least": 0,
    }
    assert drawn(begins[:4])["distribution"] == "integers", "an order of four may be chance"


def test_data_is_read_wherever_it_lies() -> None:
    assert drawn(Tensor(np.array([1.0, 2.0]), "torch.bfloat16"))["high"] == 2
    assert drawn(Tensor(np.array([1, 2]), "torch.int64"))["high"] == 3
    assert drawn(OnDevice(np.array([1, 2])))["high"] == 3
    assert drawn(np.array([1, 2], ml_dtypes.bfloat16))["high"] == 2


def test_tensors_describe_the_same_job_as_arrays() -> None:
    source = """
    __kernel void gather(__global const float* table, __global const long* index, __global float* out,
                         int n) {
      int i = get_global_id(0);
      if (i < n) out[i] = table[index[i]];
    }
    """
    table = np.random.default_rng(0).normal(size=100).astype(np.float32)
    index = np.array([0, 99, 3, 50, 7, 3, 2, 1], np.int64)
    sizes = {"rows": 100, "n": 8}

    def job(kind: Callable[[Array], Any]) -> Job:
        arrays = [kind(table), kind(index), kind(np.empty(8, np.float32)), 8]
        return job_of(TuneCall(source, arrays, sizes, grid="ceil_div(n, 64)", block=64))

    tensors = job(lambda array: Tensor(array, f"torch.{array.dtype}"))
    assert tensors == job(lambda array: array)
    draw = tensors.kernel.arguments[1].draw
    assert draw is not None and draw.high is not None and str(draw.high) == "rows"


def test_an_empty_example_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"arguments\.x: the example is empty"):
        drawn(np.zeros(0, np.int32))
