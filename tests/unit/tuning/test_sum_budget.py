"""The error budget of long sums: float32 in any order passes, a half-precision accumulator does not."""

import numpy as np
import pytest

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.job import Tolerance
from warpsmith.verify.compare import Budget, compare

SUMS = 4096
WIDE = Tolerance(rtol=0.5, atol=1e3)
"""So wide that the budget alone decides."""


def added(terms: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
    """Sums of the rows, term by term, in this type."""
    total = np.zeros(len(terms), dtype)
    for column in terms.astype(dtype).T:
        total += column
    return total


@pytest.mark.parametrize("count", [64, 1024, 4096])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_other_orders_of_a_sum_keep_within_the_budget_of_a_tree(count: int, seed: int) -> None:
    terms = np.random.default_rng(seed).standard_normal((SUMS, count)).astype(np.float32)
    want = terms.sum(axis=1, dtype=np.float64)
    own = compare(terms.sum(axis=1), want, WIDE).max_error
    budget = Budget(own, Dtype.FLOAT32, terms=count)
    for order in (terms, terms[:, ::-1]):
        assert compare(added(order, np.float32), want, WIDE, budget).over_budget == 0
    assert compare(added(terms, np.float16), want, WIDE, budget).over_budget > SUMS // 2
    if count > 64:
        no_sum = Budget(own, Dtype.FLOAT32)
        assert compare(added(terms, np.float32), want, WIDE, no_sum).over_budget > 0


def test_a_short_output_has_no_more_for_its_sums() -> None:
    assert Budget(0.0, Dtype.FLOAT16, 4096).rounding == Budget(0.0, Dtype.FLOAT16).rounding
    assert Budget(0.0, Dtype.FLOAT32, 4096).rounding == pytest.approx(1.25 * 64 * 2.0**-23)
    assert Budget(0.0, Dtype.FLOAT64, 4096).rounding == pytest.approx(1.25 * 64 * 2.0**-52)
