"""Winners, measured again: fresh processes, fresh seeds, interleaved with the baseline.

Only these figures are published. A winner that fails its second check is withdrawn, and the next
best configuration of that workload takes its place.
"""

from collections.abc import Callable, Sequence

from warpsmith.domain.jobs.job import Job
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.tasks import BaselineResult, Choice, VerifyResult
from warpsmith.tuning.winners.between import Between
from warpsmith.tuning.winners.finalists import (
    Finalist,
    chosen,
    few,
    overall_speedup,
    ranked,
    within_reach,
    without_gain,
)
from warpsmith.tuning.winners.winner_election import MOST_FINALISTS, ComparisonPlan, Decision, Election

__all__ = ["ComparisonPlan", "Finalist", "overall_speedup", "ranked", "verify_winners"]


def verify_winners(
    job: Job,
    ports: SessionPorts,
    finalists: Sequence[Finalist],
    plan: ComparisonPlan,
    alive: Callable[[], bool],
    baseline: BaselineResult | None = None,
) -> VerifyResult:
    """Measure the best configuration of every workload against the baseline, if it promises a gain.

    Args:
        finalists: measured trials, in any order.
        plan: how every comparison is made.
        alive: asked between groups of workloads; False ends the work (the lease is lost).
        baseline: cases on which the user's kernel is right; winners must be right on them, too.

    Raises:
        InvalidInput: the job's reference or kernel can no longer be used.
    """
    table = few(job, finalists, baseline)
    found = _verified(job, ports, table, plan, alive, baseline)
    lost = {w.candidate for w in found.withdrawn if w.is_fault}
    others = [f for f in finalists if f.candidate not in lost]
    full = len(table) < len(finalists) and all(c.candidate is None for c in found.choices)
    if not (lost and others and full):
        return found
    # The table had no room for other templates than those that fell.
    again = verify_winners(job, ports, others, plan, alive, baseline)
    return again.model_copy(update={"withdrawn": (*found.withdrawn, *again.withdrawn)})


def _verified(
    job: Job,
    ports: SessionPorts,
    table: Sequence[Finalist],
    plan: ComparisonPlan,
    alive: Callable[[], bool],
    baseline: BaselineResult | None,
) -> VerifyResult:
    idle = without_gain(job, table, baseline, plan.least_gain)
    compared = [w for w in job.workloads if w.key not in idle]
    election = Election(job, ports, plan, baseline)
    decided: dict[str, Decision] = {}
    try:
        for group in election.groups(compared):
            if not alive():
                break
            election.begin(group)
            asked = election.retimed({w.key: (w, ranked(job, w, table, baseline)) for w in group})
            near = {
                k: (w, within_reach(job, w, some, baseline, MOST_FINALISTS)) for k, (w, some) in asked.items()
            }
            decided |= election.decide(near)
        decided, between = Between(job, election, baseline).settled(election.inspected(decided), alive)
    finally:
        election.close()
    comparisons = [d.comparison for d in decided.values() if d.comparison is not None]
    choices = [
        Choice(workload=w.key)
        if w.key in idle
        else chosen(job, w, decided[w.key].server, decided[w.key].comparison, baseline)
        for w in job.workloads
        if w.key in idle or w.key in decided
    ]
    return VerifyResult(
        comparisons=tuple(comparisons),
        choices=tuple(choices),
        speedup=overall_speedup(job, comparisons, choices),
        no_gain=tuple(idle.values()),
        withdrawn=tuple(election.withdrawn),
        between=between,
    )
