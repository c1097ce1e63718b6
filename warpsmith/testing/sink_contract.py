"""Contract of every `TrialSink`.

A module of tests offers the fixture `case`, a `SinkCase`, and inherits from `SinkContract`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.ports import TrialSink

A: Configuration = {"BLOCK": 32, "PER": 1}
B: Configuration = {"BLOCK": 64, "PER": 1}
WRONG = Rejected(stage=Stage.CORRECTNESS, reason="wrong")
SOON_S = 5.0
"""A sink commits about once a second."""


class SinkCase(Protocol):
    """A sink of a slice that holds its lease, and what may happen to it."""

    sink: TrialSink

    def kept(self) -> Sequence[Configuration]:
        """Finished trials that a later slice would hear of, in order."""
        ...

    def cancel(self) -> None:
        """The job is cancelled."""
        ...

    def lose(self) -> None:
        """The lease passes to somebody else."""
        ...


def soon(condition: Callable[[], bool]) -> bool:
    """True if the condition becomes true within some seconds."""
    deadline = time.monotonic() + SOON_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class SinkContract:
    """For every sink, a fake one included."""

    def test_a_slice_that_holds_its_lease_goes_on(self, case: SinkCase) -> None:
        assert case.sink.alive()
        assert list(case.kept()) == []

    def test_what_finished_is_kept_without_being_asked_again(self, case: SinkCase) -> None:
        case.sink.proposed([A, B])
        case.sink.finished(A, WRONG, 0.1)
        assert soon(lambda: list(case.kept()) == [A])
        case.sink.finished(B, WRONG, 0.1)
        assert soon(lambda: list(case.kept()) == [A, B])
        assert case.sink.alive()

    def test_a_cancelled_job_ends_the_slice(self, case: SinkCase) -> None:
        case.cancel()
        assert soon(lambda: not case.sink.alive())

    def test_a_lost_lease_ends_the_slice_and_keeps_nothing_more(self, case: SinkCase) -> None:
        case.sink.proposed([A, B])
        case.sink.finished(A, WRONG, 0.1)
        assert soon(lambda: list(case.kept()) == [A])
        case.lose()
        case.sink.finished(B, WRONG, 0.1)
        assert soon(lambda: not case.sink.alive())
        assert list(case.kept()) == [A]
