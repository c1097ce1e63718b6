"""A limit on what reading one source may take, in steps, so that it is the same on every machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class TooMuchWork(Exception):
    """The analysis of a source takes more steps than it may. No conclusion follows from where it ended."""


_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def limited_work(steps: int) -> Iterator[None]:
    """Context in which walks through syntax trees take so many steps at most, all together."""
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Count steps.

    Raises:
        TooMuchWork: there are none left.
    """
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise TooMuchWork
