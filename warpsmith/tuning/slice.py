"""A slice: one worker runs trials of one candidate until its lease, its budget or the space ends."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from warpsmith.domain.outcome import Measured, Outcome, Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.tuning.bench import Bench
from warpsmith.tuning.drift import DriftWatch
from warpsmith.tuning.ports import Searcher, TrialSink
from warpsmith.tuning.tasks import BaselineResult, SliceResult
from warpsmith.tuning.trial import run_gate, run_trial, time_us


@dataclass(frozen=True)
class SliceLimits:
    """When a slice ends by itself."""

    seconds: float
    trials: int
    compile_ahead: int
    """Configurations that may be compiling or waiting while one is on the device."""


@dataclass(frozen=True)
class _Pending:
    configuration: Configuration
    kernel: ConfiguredKernel
    compiled: "Future[Compiled | Rejected]"


def run_slice(
    bench: Bench,
    template: Template,
    baseline: BaselineResult,
    searcher: Searcher,
    sink: TrialSink,
    limits: SliceLimits,
    leftover: Sequence[Configuration] = (),
    gate: bool = True,
) -> SliceResult:
    """Run trials and report each to the searcher and the sink.

    Compiling overlaps with the device, except where kernels run on the host's own cores: there a
    batch is compiled first and timed afterwards.

    Args:
        leftover: configurations proposed by an earlier slice that never finished; they run first.
        gate: the template is new: its default configuration is checked whole before anything else,
            and a failure rejects the candidate.

    Raises:
        InvalidInput: the job's reference is of no use.
    """
    started = time.monotonic()
    bench.learn(baseline)
    baseline_us = {t.workload: time_us(bench.job, t) or 0.0 for t in baseline.timings}
    done = 0

    def finish(configuration: Configuration, outcome: Outcome, began: float) -> None:
        nonlocal done
        searcher.tell(configuration, outcome.objective if isinstance(outcome, Measured) else None)
        sink.finished(configuration, outcome, time.monotonic() - began)
        done += 1

    def result(exhausted: bool = False, rejected: str = "") -> SliceResult:
        seconds = time.monotonic() - started
        return SliceResult(trials=done, seconds=seconds, exhausted=exhausted, rejected=rejected)

    if gate:
        configuration = template.space.defaults
        began = time.monotonic()
        sink.proposed([configuration])
        kernel = template.configured(configuration)
        outcome = run_gate(bench, template, kernel, bench.compile(kernel), baseline_us)
        finish(configuration, outcome, began)
        if isinstance(outcome, Rejected):
            return result(rejected=f"{outcome.stage.value}: {outcome.reason}")
        bench.renew()

    drift = DriftWatch(bench, baseline_us)
    proposals = _Proposals(bench, template, searcher, sink, limits, list(leftover))
    while done < limits.trials and time.monotonic() - started < limits.seconds:
        if not sink.alive():
            return result()
        began = time.monotonic()
        pending = proposals.next(limits.trials - done)
        if pending is None:
            return result(exhausted=True)
        compiled = pending.compiled.result()
        outcome = drift.corrected(run_trial(bench, template, pending.kernel, compiled, baseline_us))
        finish(pending.configuration, outcome, began)
    return result()


class _Proposals:
    """Keeps the compilers busy with what the searcher wants next."""

    def __init__(
        self,
        bench: Bench,
        template: Template,
        searcher: Searcher,
        sink: TrialSink,
        limits: SliceLimits,
        leftover: list[Configuration],
    ) -> None:
        self._bench = bench
        self._template = template
        self._searcher = searcher
        self._sink = sink
        self._ahead = max(1, limits.compile_ahead)
        self._leftover = leftover
        self._queue: deque[_Pending] = deque()

    def next(self, wanted: int) -> _Pending | None:
        """The next configuration to run; None when there is nothing left."""
        shares_host = self._bench.tools.opener.info.shares_host
        if not self._queue or not shares_host:
            self._fill(wanted)
        if shares_host:
            for pending in self._queue:
                pending.compiled.exception()
        return self._queue.popleft() if self._queue else None

    def _fill(self, wanted: int) -> None:
        count = min(self._ahead, wanted) - len(self._queue)
        if count <= 0:
            return
        fresh = list(self._take_leftover(count))
        if len(fresh) < count:
            asked = list(self._searcher.ask(count - len(fresh)))
            self._sink.proposed(asked)
            fresh += asked
        info = self._bench.tools.opener.info
        for configuration in fresh:
            kernel = self._template.configured(configuration)
            compiled = self._bench.tools.compiler.submit(kernel, info)
            self._queue.append(_Pending(configuration, kernel, compiled))

    def _take_leftover(self, count: int) -> Iterator[Configuration]:
        while self._leftover and count > 0:
            count -= 1
            yield self._leftover.pop(0)
