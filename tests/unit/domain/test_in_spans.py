"""Comparisons over several threads report what one thread reports."""

import os
import threading
from unittest.mock import patch

import numpy as np
import pytest

from testbed.deadlines import HANGS_S
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.verify import in_spans as module
from warpsmith.verify.compare import ErrorBudget, compare, root_mean_square
from warpsmith.verify.in_spans import in_spans, pieces

TOLERANCE = Tolerance(rtol=1e-3, atol=1e-3)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 10)
    monkeypatch.setattr(module, "SPAN_CHUNKS", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(16)))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 39, 40, 41, 79, 80, 81, 1000, 1001])
def test_every_element_is_in_one_piece_of_one_span(size: int) -> None:
    found = in_spans(size, lambda span: [i for p in pieces(span) for i in range(p.start, p.stop)])
    assert [i for part in found for i in part] == list(range(size))
    assert len(found) <= 4
    assert (len(found) > 1) is (size > 30), "below two spans of two chunks, one thread is enough"


@pytest.mark.usefixtures("threads")
def test_spans_are_worked_on_at_once() -> None:
    meeting = threading.Barrier(4, timeout=HANGS_S)
    assert len(in_spans(1000, lambda _span: meeting.wait())) == 4


@pytest.mark.parametrize("size", [7, 100, 999])
@pytest.mark.parametrize("budget", [None, ErrorBudget(0.01, Dtype.FLOAT32)])
@pytest.mark.parametrize("wrong", [(), (0,), (3, 500), (998,)])
@pytest.mark.parametrize("off", [0.0, 1e-4])
def test_a_report_does_not_depend_on_the_threads(
    size: int, budget: ErrorBudget | None, wrong: tuple[int, ...], off: float, threads: None
) -> None:
    rng = np.random.default_rng(size)
    want = rng.standard_normal(size)
    got = (want + off * rng.standard_normal(size)).astype(np.float32)
    for place in wrong:
        got[place % size] += 1.0
    several = compare(got, want, TOLERANCE, budget), root_mean_square(want)
    with patch.object(os, "sched_getaffinity", lambda _pid: {0}):
        assert (compare(got, want, TOLERANCE, budget), root_mean_square(want)) == several
    if wrong:
        assert several[0].first_wrong == min(p % size for p in wrong)
