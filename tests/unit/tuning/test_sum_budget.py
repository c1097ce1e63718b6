"""The error budget of long sums: float32 in any order passes, a half-precision accumulator does not."""

import numpy as np
import pytest

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.tuning.outputs.output_checks import EDGE_CASE_LUCK, EDGE_CASE_STRAYS
from warpsmith.verify.compare import ErrorBudget, compare

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
    budget = ErrorBudget(own, Dtype.FLOAT32, terms=count)
    for order in (terms, terms[:, ::-1]):
        assert compare(added(order, np.float32), want, WIDE, budget).over_budget == 0
    assert compare(added(terms, np.float16), want, WIDE, budget).over_budget > SUMS // 2
    if count > 64:
        no_sum = ErrorBudget(own, Dtype.FLOAT32)
        assert compare(added(terms, np.float32), want, WIDE, no_sum).over_budget > 0


def test_a_short_output_has_no_more_for_its_sums() -> None:
    assert ErrorBudget(0.0, Dtype.FLOAT16, 4096).rounding == ErrorBudget(0.0, Dtype.FLOAT16).rounding
    assert ErrorBudget(0.0, Dtype.FLOAT32, 4096).rounding == pytest.approx(1.25 * 64 * 2.0**-23)
    assert ErrorBudget(0.0, Dtype.FLOAT64, 4096).rounding == pytest.approx(1.25 * 64 * 2.0**-52)


def normalised(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """A layer norm whose variance is a difference of squares, with sums in this order of the columns."""
    columns, count = rows[:, order].T, np.float32(rows.shape[1])
    mean = added(columns.T, np.float32) / count
    variance = added(np.square(columns.T), np.float32) / count - mean * mean
    return (rows - mean[:, None]) / np.sqrt(variance + np.float32(1e-5))[:, None]


def layer_norm(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Short rows in two orders, and exactly."""
    rows = np.random.default_rng(seed).standard_normal((485, 4)).astype(np.float32)
    exact = rows.astype(np.float64)
    want = (exact - exact.mean(1)[:, None]) / np.sqrt(exact.var(1) + 1e-5)[:, None]
    own, other = (normalised(rows, np.array(order)) for order in ((0, 1, 2, 3), (2, 0, 3, 1)))
    return own.ravel(), other.ravel(), want.ravel()


@pytest.mark.parametrize("seed", [4584, 5140, 7971, 9361])
def test_in_an_edge_case_a_few_elements_may_have_nearly_all_of_the_error(seed: int) -> None:
    """Four of 12,000 draws, in which one of two equally exact kernels was lucky in the worst row."""
    own, other, want = layer_norm(seed)
    tolerance = Tolerance(rtol=1e-5, atol=1e-5)
    error = EDGE_CASE_LUCK * compare(own, want, tolerance).max_error
    assert compare(other, want, tolerance, ErrorBudget(error, Dtype.FLOAT32, 4)).over_budget > 0
    fair = ErrorBudget(error, Dtype.FLOAT32, 4, EDGE_CASE_STRAYS)
    assert compare(other, want, tolerance, fair).over_budget == 0


def test_many_elements_that_are_less_exact_are_refused_in_an_edge_case_too() -> None:
    seen = 0
    for seed in range(40):
        own, _, want = layer_norm(seed)
        wide = Tolerance(rtol=1e-2, atol=1e-2)
        error = EDGE_CASE_LUCK * compare(own, want, wide).max_error
        short = want.astype(np.float16).astype(np.float32)
        seen += (
            compare(short, want, wide, ErrorBudget(error, Dtype.FLOAT32, 4, EDGE_CASE_STRAYS)).over_budget > 0
        )
    assert seen > 20, "an unlucky row of the user's kernel hides them in the others"
