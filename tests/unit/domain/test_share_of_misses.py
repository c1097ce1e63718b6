"""A share of an output's elements may be off by a step; nothing else is let through by it."""

import numpy as np
import pytest

from warpsmith.domain.jobs.job import Tolerance
from warpsmith.errors import InvalidInput
from warpsmith.job_files.jobfile import parse_job
from warpsmith.testing.jobs import scale_job
from warpsmith.verify.compare import ErrorBudget, allowed_misses, compare, misses, passes

N = 1000
STEPS = Tolerance(rtol=0, atol=0, share=0.01, within=1)
WANT = np.random.default_rng(5).integers(-127, 128, N).astype(np.int16)


def off(count: int, by: int = 1, want: np.ndarray = WANT) -> np.ndarray:
    got = want.copy()
    got[7 : 7 + count] += by
    return got


@pytest.mark.parametrize(("count", "wrong"), [(0, 0), (1, 0), (10, 0), (11, 11), (500, 500)])
def test_a_share_of_the_elements_may_be_off_by_a_step(count: int, wrong: int) -> None:
    report = compare(off(count), WANT, STEPS)
    assert report.wrong == wrong
    assert passes(off(count), WANT, STEPS) is (wrong == 0)
    assert report.max_error == (1.0 if count else 0.0)
    assert report.first_wrong == (7 if wrong else None)
    if wrong:
        assert f"{count} miss by up to 1, 10 may" in report.detail


def test_no_element_may_be_off_by_two_steps() -> None:
    got = off(10)
    got[500] += 2
    report = compare(got, WANT, STEPS)
    assert (report.wrong, report.first_wrong) == (1, 500)
    assert not passes(got, WANT, STEPS)
    assert misses(got, WANT, STEPS) == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_no_allowed_miss(bad: float) -> None:
    floats, wide = WANT.astype(np.float32), Tolerance(rtol=0, atol=0, share=0.05, within=1e6)
    got = floats.copy()
    got[3] = bad
    assert compare(got, floats, wide).wrong == 1
    assert compare(floats, got, wide).wrong == 1
    assert not passes(got, floats, wide)
    assert compare(got, got.copy(), wide).max_error == 0.0


def test_a_sample_may_have_more_by_chance() -> None:
    assert allowed_misses(STEPS, N) == 10
    assert allowed_misses(STEPS, N, is_part=True) == 19
    assert compare(off(19), WANT, STEPS, is_part=True).wrong == 0
    assert compare(off(20), WANT, STEPS, is_part=True).wrong == 20


@pytest.mark.parametrize("count", [1, 3, 7, 29, 57])
def test_a_share_made_of_a_count_gives_that_count(count: int) -> None:
    for n in (1199, 3000, 65_521):
        assert allowed_misses(Tolerance(rtol=0, atol=0, share=count / n, within=1), n) == count


def test_long_outputs_are_counted_over_all_their_pieces() -> None:
    long = np.tile(WANT, 3000)
    got = long.copy()
    got[::100] += 1
    assert compare(got, long, STEPS).wrong == 0
    assert passes(got, long, STEPS)
    got[1] += 1
    assert compare(got, long, STEPS).first_wrong == 0
    assert not passes(got, long, STEPS)


def test_a_difference_within_the_tolerance_uses_up_no_share() -> None:
    floats, near = WANT.astype(np.float32), Tolerance(rtol=0, atol=0.5, share=0.01, within=1)
    got = floats + np.float32(0.25)
    got[:10] += np.float32(0.75)
    report = compare(got, floats, near, ErrorBudget(0.0, dtype=scale_job().kernel.arguments[1].dtype))
    assert report.wrong == 0
    assert report.max_error == 1.0
    got[10] += np.float32(0.75)
    assert compare(got, floats, near).wrong == 11


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": 0.01}, "tolerances.y.share: needs `within`"),
        ({"within": 1}, "tolerances.y.within: needs `share`"),
        ({"share": 0.06, "within": 1}, "tolerances.y.share"),
        ({"share": -0.1, "within": 1}, "tolerances.y.share"),
        ({"share": 0.01, "within": float("inf")}, "tolerances.y.within"),
        ({"share": 0.01, "within": float("nan")}, "tolerances.y.within"),
    ],
)
def test_errors_name_the_field(given: dict[str, float], words: str) -> None:
    fields = scale_job().model_dump(mode="json", exclude_unset=True)
    fields["tolerances"] = {"y": {"rtol": 0, "atol": 0} | given}
    with pytest.raises(InvalidInput) as raised:
        parse_job(fields)
    assert "tolerances.y" in str(raised.value)
    assert words in str(raised.value)
