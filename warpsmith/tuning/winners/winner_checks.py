"""Checks of winners when nothing is timed any more: other inputs and shapes, beside the sanitizers."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass, field

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.checks.extra_cases import check_further
from warpsmith.tuning.checks.sanitizers import Built, SanitizerCheck
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.winners.finalists import Finalist, Name


@dataclass(frozen=True)
class Winner:
    """A finalist that was faster on a workload."""

    workload: Workload
    finalist: Finalist
    kernel: ConfiguredKernel
    compiled: Compiled
    session: DeviceSession
    """Its own process."""


@dataclass
class WinnerChecks:
    """Each configuration goes through all edge cases once.

    Args:
        sanitizers: what winners are inspected with, and keeps its findings; None if there is none.
    """

    sanitizers: SanitizerCheck | None
    _through_edge_cases: set[Name] = field(default_factory=set)

    def refused(
        self, winners: Sequence[Winner], beside: Executor, own: Callable[[], Built]
    ) -> dict[str, Rejected]:
        """Reasons for withdrawing winners, by the keys of their workloads.

        The configurations are checked beside each other, unless kernels run on the host's cores.

        Args:
            own: gives the user's kernel.
        """
        if not winners:
            return {}
        PROGRESS.at("verification: further cases of the winners")
        inspecting = []
        if self.sanitizers is not None:
            built = [(w.workload, (w.kernel, w.compiled)) for w in winners]
            inspecting.append(beside.submit(self.sanitizers.inspect, built, own()))
        parts: dict[Name, list[Winner]] = {}
        for winner in winners:
            parts.setdefault(winner.finalist.name, []).append(winner)
        found: dict[str, Rejected] = {}
        try:
            if winners[0].session.info.shares_host:
                for part in parts.values():
                    found |= self._refused(part)
            else:
                checking = [beside.submit(self._refused, part) for part in parts.values()]
                wait(checking)
                for one in checking:
                    found |= one.result()
        finally:
            wait(inspecting)
        return found

    def _refused(self, part: Sequence[Winner]) -> dict[str, Rejected]:
        """Reasons for withdrawing one configuration, workload by workload."""
        return {w.workload.key: found for w in part if (found := self._rejection(w)) is not None}

    def _rejection(self, winner: Winner) -> Rejected | None:
        name = winner.finalist.name
        try:
            refused = check_further(
                winner.session,
                winner.finalist.template,
                winner.kernel,
                winner.compiled,
                [winner.workload],
                edge_cases=name not in self._through_edge_cases,
            )
        except (KernelRefused, ExpressionError, ChildDied) as exc:
            return fault(winner.session, exc)
        if refused is None:
            self._through_edge_cases.add(name)
        return refused


def fault(session: DeviceSession, exc: Exception) -> Rejected:
    """Reason for withdrawing a finalist whose launch ended in an error; renews a process that ended."""
    if not isinstance(exc, ChildDied):
        return Rejected(stage=Stage.LAUNCH, reason=str(exc)[:2000])
    session.renew(faulted=True)
    return Rejected(stage=Stage.RUN, reason=f"ended its process: {exc}"[:2000])
