"""Templates that verifications withdrew, and the verification that stands. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from warpsmith.domain.state import CandidateState
from warpsmith.domain.templates.space import configuration_key
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot
from warpsmith.tuning.tasks import Payload, Result, SlicePayload, SliceResult, VerifyResult, Withdrawal


class EndedTask(Protocol):
    """A task in any form."""

    @property
    def payload(self) -> Payload | None:
        """Payload of the task."""
        ...

    @property
    def result(self) -> Result | None:
        """Result of the task; None before its end."""
        ...


def verifications(tasks: Iterable[EndedTask]) -> list[VerifyResult]:
    """Results of a job's verifications, in order."""
    return [t.result for t in tasks if isinstance(t.result, VerifyResult)]


def standing(results: Sequence[VerifyResult]) -> VerifyResult | None:
    """The verification that is published: the fastest, of equals the first; None before there is one.

    A verification of which a later one withdrew a choice does not stand.
    """
    found: VerifyResult | None = None
    for result in results:
        if found is None or result.speedup > found.speedup or _withdraws(result, found):
            found = result
    return found


def faults(results: Iterable[VerifyResult]) -> list[Withdrawal]:
    """Withdrawals for what templates do, the newest verification first."""
    return [w for result in reversed([*results]) for w in result.withdrawn if w.is_fault]


def fault_of(tasks: Iterable[EndedTask], candidate: str) -> Withdrawal | None:
    """The fault for which a verification withdrew a candidate; None if none did, or part of it serves."""
    results = verifications(tasks)
    stands = standing(results)
    if stands is None or any(c.candidate == candidate for c in stands.choices):
        return None
    return next((w for w in faults(results) if w.candidate == candidate), None)


def lost_best(snapshot: JobSnapshot) -> CandidateSummary | None:
    """The best candidate, if a verification withdrew it for a fault and nothing of it serves."""
    known = [c for c in snapshot.candidates if c.state is not CandidateState.REJECTED]
    measured = [(c.best_objective, c.number, c) for c in known if c.best_objective is not None]
    if not measured:
        return None
    best = min(measured, key=lambda found: found[:2])[2]
    return None if fault_of(snapshot.tasks, best.id) is None else best


def rejections_in(tasks: Sequence[EndedTask]) -> dict[str, str]:
    """Reasons for which candidates were rejected, by their first trial or by a verification."""
    found = {
        t.payload.candidate: t.result.reason
        for t in tasks
        if isinstance(t.payload, SlicePayload) and isinstance(t.result, SliceResult)
    }
    for fallen in reversed(faults(verifications(tasks))):
        if fault_of(tasks, fallen.candidate) is not None:
            found[fallen.candidate] = str(fallen)
    return found


def _withdraws(later: VerifyResult, earlier: VerifyResult) -> bool:
    fallen = {(w.candidate, configuration_key(w.configuration)) for w in faults([later])}
    chosen = ((c.candidate, c.configuration) for c in earlier.choices)
    return any((name, configuration_key(c)) in fallen for name, c in chosen if c is not None)
