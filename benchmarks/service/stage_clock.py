"""Where the seconds of a task go: wraps functions of this process and adds up the time inside each.

A function's own time excludes that of wrapped functions which it calls, so the parts of a stage add up to no
more than the stage. What runs in other threads is counted apart: it delays nothing unless somebody waits.
"""

import functools
import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

WRAPPED = (
    ("child start", "warpsmith.sandbox.device_host:ChildOpener.open"),
    ("child start", "warpsmith.sandbox.device_host:ChildOpener.open_watched"),
    ("draw on the device", "warpsmith.sandbox.device_host:ChildDevice.prepare"),
    ("checked launches", "warpsmith.sandbox.device_host:ChildDevice.run"),
    ("timed launches", "warpsmith.sandbox.device_host:ChildDevice.time"),
    ("load", "warpsmith.sandbox.device_host:ChildDevice.load"),
    ("compile", "warpsmith.tuning.session.device_session:DeviceSession.compile"),
    ("reference", "warpsmith.tuning.session.expected_outputs:ExpectedOutputs.compute"),
    ("compare", "warpsmith.tuning.session.output_checks:compare"),
    ("compare", "warpsmith.tuning.checks.trivial_answers:untestable"),
    ("sizes of outputs", "warpsmith.tuning.checks.baseline_cases:_growth"),
    ("sizes of outputs", "warpsmith.tuning.checks.baseline_cases:_finite"),
    ("sizes of outputs", "warpsmith.tuning.session.expected_outputs:output_sizes"),
    ("families", "warpsmith.tuning.checks.baseline_cases:family_cases"),
    ("ceilings", "warpsmith.tuning.baseline:ceilings_of"),
    ("energy", "warpsmith.tuning.winners.verify:energies"),
    ("sanitizer", "warpsmith.tuning.checks.sanitizers:SanitizerCheck.inspect"),
    ("wait for the device", "worker.device_lock:_take"),
    ("quiet for timing", "warpsmith.tuning.checks.reference_prefetch:ReferencePrefetch._rest"),
)
"""Functions whose seconds are told apart, with the names of what they do."""


@dataclass
class StageClock:
    """Seconds by stage and part. A stage is whatever `stage` was last entered with."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Whole seconds by stage."""
    parts: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Seconds by stage and part in the thread that runs the stage."""
    beside: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """The same in other threads."""
    _stage: str = ""
    _thread: int = 0
    _inner: threading.local = field(default_factory=threading.local)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what is called meanwhile under this stage."""
        self._stage, self._thread = name, threading.get_ident()
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] += time.monotonic() - began
            self._stage = ""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Context in which the functions of `WRAPPED` are timed."""
        with ExitStack() as patches:
            for part, place in WRAPPED:
                module, _, name = place.partition(":")
                *owners, last = name.split(".")
                owner = functools.reduce(getattr, owners, importlib.import_module(module))
                patches.enter_context(patch.object(owner, last, self._timed(part, getattr(owner, last))))
            yield

    def record(self) -> dict[str, Any]:
        """Rounded seconds of every stage, its parts by size, and what is left."""
        return {
            stage: {
                "seconds": round(whole, 2),
                "parts": self._of(self.parts, stage),
                "rest": round(whole - sum(s for (at, _), s in self.parts.items() if at == stage), 2),
                "in_other_threads": self._of(self.beside, stage),
            }
            for stage, whole in self.seconds.items()
        }

    def _of(self, seconds: dict[tuple[str, str], float], stage: str) -> dict[str, float]:
        found = {part: round(s, 2) for (at, part), s in seconds.items() if at == stage and s >= 0.005}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            outer: list[float] = getattr(self._inner, "seconds", None) or []
            self._inner.seconds = outer
            outer.append(0.0)
            began = time.monotonic()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.monotonic() - began
                own = took - outer.pop()
                if outer:
                    outer[-1] += took
                if self._stage:
                    here = self.parts if threading.get_ident() == self._thread else self.beside
                    here[self._stage, part] += own

        return timed
