"""Threads for the requests of an `AsyncClient`."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads(Executor):
    """Runs calls in threads, which end when nothing waits: there is nothing to shut down.

    `ThreadPoolExecutor` keeps a program from ending until its last call has returned, which takes the whole
    time-out of a service that hangs. These threads keep no program.

    Args:
        most: calls at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a thread, as soon as one is free."""
        future: Future[T] = Future()
        with self._lock:
            if self._running < self._most:
                threading.Thread(target=self._work, name="warpsmith-client", daemon=True).start()
                self._running += 1
            self._waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            _run(*taken)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None


def _run(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = call()
    except BaseException as exc:  # noqa: BLE001 - it is raised where the call is awaited
        future.set_exception(exc)
    else:
        future.set_result(found)
