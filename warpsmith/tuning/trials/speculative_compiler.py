"""Compiles likely configurations while compilers are idle, and tells the searcher their reports.

Registers, shared memory and spills are known long before a time is, and a configuration that does not compile
need not be proposed. The binary of a configuration that is proposed later is ready at once.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts, Rejected
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.errors import ExpressionError
from warpsmith.tuning.analysis.search_facts import occupancy_of
from warpsmith.tuning.ports import CompileForecast, Searcher
from warpsmith.tuning.session.device_session import DeviceSession

MOST_KEPT = 256
"""Limit on the binaries that are kept; the oldest are dropped."""


@dataclass(frozen=True)
class Pending:
    """A configuration whose binary is being compiled."""

    configuration: Configuration
    kernel: ConfiguredKernel
    compiled: "Future[Compiled | Rejected]"


class SpeculativeCompiler:
    """Compiles configurations before they are asked for.

    Args:
        searcher: is told compilers' reports if it has a forecast.
    """

    def __init__(self, session: DeviceSession, template: Template, searcher: Searcher) -> None:
        self._session = session
        self._template = template
        self._searcher = searcher
        self._early: dict[str, Pending] = {}
        """Compiled but not yet asked for, oldest first."""
        self._unheard: list[Pending] = []
        """Configurations whose reports are pending."""

    def compile(self, configuration: Configuration) -> Pending:
        """A configuration that was asked for, with its binary or pending compilation."""
        early = self._early.pop(configuration_key(configuration), None)
        return early or self._submit(configuration)

    def top_up(self, idle: int, after: Sequence[Configuration] = ()) -> None:
        """Tell new compiler reports, and start as many compilations as compilers are idle.

        Args:
            idle: number of compilers without other work, including those busy for this object.
            after: configurations that run beforehand; see `CompileForecast.likely`.
        """
        forecast = self._searcher.forecast
        if forecast is None:
            return
        self._hear(forecast)
        idle -= sum(not p.compiled.done() for p in self._early.values())
        if idle <= 0:
            return
        for configuration in forecast.likely(idle + len(self._unheard), after):
            key = configuration_key(configuration)
            if idle > 0 and all(configuration != p.configuration for p in self._unheard):
                self._early[key] = self._submit(configuration)
                idle -= 1
        while len(self._early) > MOST_KEPT:
            del self._early[next(iter(self._early))]

    def _submit(self, configuration: Configuration) -> Pending:
        kernel = self._template.configured(configuration)
        compiled = self._session.submit(kernel)
        pending = Pending(configuration, kernel, compiled)
        if self._searcher.forecast is not None:
            self._unheard.append(pending)
        return pending

    def _hear(self, forecast: CompileForecast) -> None:
        waiting = []
        for pending in self._unheard:
            if not pending.compiled.done():
                waiting.append(pending)
                continue
            key = configuration_key(pending.configuration)
            if pending.compiled.cancelled() or pending.compiled.exception() is not None:
                # A later request compiles it again and then reports the error.
                self._early.pop(key, None)
                continue
            found = pending.compiled.result()
            shares = [] if isinstance(found, Rejected) else self._occupancies(pending.kernel, found.facts)
            if not isinstance(found, Rejected) and max(shares, default=1.0) > 0.0:
                lowest = min(shares, default=None)
                forecast.learn(pending.configuration, lowest, bool(found.facts.spill_bytes))
            elif self._early.pop(key, None) is not None:
                forecast.exclude(pending.configuration)
        self._unheard = waiting

    def _occupancies(self, kernel: ConfiguredKernel, facts: CompileFacts) -> list[float]:
        """Occupancies of the workloads, 0 where no block fits, as far as they can be computed."""
        found = []
        for workload in self._session.job.workloads:
            with suppress(ExpressionError):
                size = launch_size(kernel, workload, self._session.info)
                found.append(occupancy_of(size, facts, self._session.info))
        return [share for share in found if share is not None]
