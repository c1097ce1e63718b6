"""Contract of every `ReferencePort`.

A module of tests offers the fixture `reference` and inherits from `ReferenceContract`, or from
`NumpyReferenceContract` where the function really runs.
"""

import numpy as np

from warpsmith.errors import InvalidInput
from warpsmith.testing.kernels import doubled, plan
from warpsmith.tuning.ports import ReferencePort
from warpsmith.verify.run_report import Array

DOUBLES = "def reference(inputs, dims):\n    return {'y': 2.0 * inputs['x']}\n"
FAILS_ONCE = """
def reference(inputs, dims):
    if dims['n'] == 7:
        raise ValueError('seven is refused')
    return {'y': 2.0 * inputs['x']}
"""


def output(found: object) -> Array:
    """`y` of an item that must be a result."""
    assert isinstance(found, dict), found
    value: Array = found["y"]
    return value


class ReferenceContract:
    """For every runner of references, a fake one included."""

    def test_results_are_flat_in_double_precision_and_in_the_order_of_the_cases(
        self, reference: ReferencePort
    ) -> None:
        cases = [(plan(n, seed=n), {"n": n}) for n in (100, 7, 33)]
        found = reference.numpy_many(DOUBLES, "reference", cases)
        assert len(found) == len(cases)
        for item, (workload, _) in zip(found, cases, strict=True):
            values = output(item)
            assert values.dtype == np.float64
            np.testing.assert_array_equal(values, doubled(workload).astype(np.float64))

    def test_no_case_has_no_result(self, reference: ReferencePort) -> None:
        assert list(reference.numpy_many(DOUBLES, "reference", [])) == []

    def test_a_function_that_is_not_there_is_an_item_and_raises_nothing(
        self, reference: ReferencePort
    ) -> None:
        (found,) = reference.numpy_many(DOUBLES, "no_such_function", [(plan(), {"n": 1001})])
        assert isinstance(found, InvalidInput)
        assert "no_such_function" in found.message

    def test_equal_calls_have_equal_results(self, reference: ReferencePort) -> None:
        case = (plan(), {"n": 1001})
        (first,), (second,) = (reference.numpy_many(DOUBLES, "reference", [case]) for _ in range(2))
        assert output(first).tobytes() == output(second).tobytes()


class NumpyReferenceContract(ReferenceContract):
    """For runners that call the function."""

    def test_a_case_that_fails_leaves_the_others_alone(self, reference: ReferencePort) -> None:
        cases = [(plan(n, seed=n), {"n": n}) for n in (100, 7, 33)]
        first, failed, last = reference.numpy_many(FAILS_ONCE, "reference", cases)
        assert isinstance(failed, InvalidInput)
        assert "seven is refused" in failed.message
        np.testing.assert_array_equal(output(first), doubled(cases[0][0]).astype(np.float64))
        np.testing.assert_array_equal(output(last), doubled(cases[2][0]).astype(np.float64))
