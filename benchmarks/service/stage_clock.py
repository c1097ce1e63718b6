"""Where the seconds of a task go: wraps functions of this process and adds up the time inside each.

A function's own time excludes that of wrapped functions which it calls, so the parts of a stage add up to no
more than the stage. What runs in other threads is counted apart: it delays nothing unless somebody waits.
"""

import functools
import importlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from benchmarks.service.child_clock import FILE
from warpsmith import child_environment
from warpsmith.sandbox.transport.process import ChildProcess

WRAPPED = (
    ("process start", "warpsmith.sandbox.transport.process:ChildProcess.__init__"),
    ("process end", "warpsmith.sandbox.transport.process:ChildProcess.kill"),
    ("open the device", "warpsmith.sandbox.hosts.device_host:ChildDevice.wait_ready"),
    ("open a child", "warpsmith.sandbox.hosts.device_host:ChildOpener.open"),
    ("open a child", "warpsmith.sandbox.hosts.device_host:ChildOpener.open_watched"),
    ("draw on the device", "warpsmith.sandbox.hosts.device_host:ChildDevice.prepare"),
    ("checked launches", "warpsmith.sandbox.hosts.device_host:ChildDevice.run"),
    ("timed launches", "warpsmith.sandbox.hosts.device_host:ChildDevice.time"),
    ("load", "warpsmith.sandbox.hosts.device_host:ChildDevice.load"),
    ("compile", "warpsmith.tuning.session.device_session:DeviceSession.compile"),
    ("reference", "warpsmith.tuning.outputs.expected_outputs:ExpectedOutputs.compute"),
    ("compare", "warpsmith.tuning.outputs.output_checks:compare"),
    ("trivial answers", "warpsmith.tuning.checks.trivial_answers:untestable"),
    ("trivial answers", "warpsmith.tuning.baseline:untestable"),
    ("noise", "warpsmith.tuning.own_noise:OwnNoise.measure"),
    ("counters", "worker.works.baseline:counters_of"),
    ("near-ties", "warpsmith.tuning.winners.winner_election:retime_near_ties"),
    ("comparison pairs", "warpsmith.tuning.winners.winner_election:time_in_pairs"),
    ("further cases", "warpsmith.tuning.winners.winner_checks:check_further"),
    ("other cache state", "warpsmith.tuning.winners.winner_election:Election._with_more"),
    ("sizes of outputs", "warpsmith.tuning.checks.baseline_cases:_growth"),
    ("sizes of outputs", "warpsmith.tuning.checks.baseline_cases:_finite"),
    ("sizes of outputs", "warpsmith.tuning.outputs.expected_outputs:output_sizes"),
    ("families", "warpsmith.tuning.checks.baseline_cases:family_cases"),
    ("ceilings", "warpsmith.tuning.baseline:ceilings_of"),
    ("energy", "warpsmith.tuning.winners.winner_election:energies"),
    ("sanitizer", "warpsmith.tuning.checks.sanitizers:SanitizerCheck.inspect"),
    ("wait for the device", "worker.device.device_lock:_take"),
    ("wait for references begun ahead", "warpsmith.tuning.checks.reference_prefetch:ReferencePrefetch._rest"),
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
    children: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Seconds of children by the stage in which they ended, and by kind and part."""
    calls: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """How often each part was called, in any thread."""
    spans: list[tuple[float, float, int, str]] = field(default_factory=list)
    """Every call in the order of its end: began and ended on the monotonic clock, thread, stage and part."""
    _stage: str = ""
    _last: str = ""
    _thread: int = 0
    _inner: threading.local = field(default_factory=threading.local)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what is called meanwhile under this stage."""
        self._stage, self._last, self._thread = name, name, threading.get_ident()
        began = time.monotonic()
        try:
            yield
        finally:
            ended = time.monotonic()
            self.seconds[name] += ended - began
            self.spans.append((began, ended, self._thread, name))
            self._stage = ""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Context in which the functions of `WRAPPED` are timed."""
        kinds = (*child_environment._CHILDREN, "benchmarks.service.clocked_children")
        with ExitStack() as patches:
            patches.enter_context(patch.object(child_environment, "_CHILDREN", kinds))
            patches.enter_context(patch.object(ChildProcess, "kill", self._collecting(ChildProcess.kill)))
            for part, place in WRAPPED:
                module, _, name = place.partition(":")
                *owners, last = name.split(".")
                owner = functools.reduce(getattr, owners, importlib.import_module(module))
                patches.enter_context(patch.object(owner, last, self._timed(part, getattr(owner, last))))
            yield

    def timeline(self, zero: float, least_s: float = 0.02) -> str:
        """The calls of at least `least_s` seconds as lines: begin, seconds, thread and part.

        Args:
            zero: the monotonic clock at the beginning.
        """
        threads: dict[int, int] = {self._thread: 0}
        lines = []
        for began, ended, thread, part in sorted(self.spans):
            if ended - began >= least_s:
                number = threads.setdefault(thread, len(threads))
                lines.append(
                    f"{began - zero:8.3f} {ended - began:7.3f} {'  ' * min(number, 8)}{number} {part}"
                )
        return "\n".join(lines) + "\n"

    def record(self) -> dict[str, Any]:
        """Rounded seconds of every stage, its parts by size, and what is left."""
        return {
            stage: {
                "seconds": round(whole, 2),
                "parts": self._of(self.parts, stage),
                "rest": round(whole - sum(s for (at, _), s in self.parts.items() if at == stage), 2),
                "in_other_threads": self._of(self.beside, stage),
                "in_children": self._of(self.children, stage),
                "calls": {part: n for (at, part), n in self.calls.items() if at == stage},
            }
            for stage, whole in self.seconds.items()
        }

    def _of(self, seconds: dict[tuple[str, str], float], stage: str) -> dict[str, float]:
        found = {part: round(s, 2) for (at, part), s in seconds.items() if at == stage and s >= 0.005}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _collecting(self, kill: Callable[[ChildProcess], None]) -> Callable[[ChildProcess], None]:
        """A child's end, before which its clock is read."""

        @functools.wraps(kill)
        def read(child: ChildProcess) -> None:
            try:
                found = json.loads((child.private / FILE).read_text())
            except (OSError, ValueError):
                found = {}
            for part, seconds in found.items():
                self.children[self._stage or self._last, part] += seconds
            kill(child)

        return read

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
                ended = time.monotonic()
                took = ended - began
                own = took - outer.pop()
                if outer:
                    outer[-1] += took
                self.spans.append((began, ended, threading.get_ident(), f"{self._stage}: {part}"))
                if self._stage:
                    here = self.parts if threading.get_ident() == self._thread else self.beside
                    here[self._stage, part] += own
                    self.calls[self._stage, part] += 1

        return timed
