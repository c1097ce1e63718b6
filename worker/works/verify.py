"""The task `verify`: the winners, measured again."""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Set

from db.queue.lease import Lease
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.tables import CandidateRow, TaskRow, TrialRow
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import CandidateState
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import configuration_key
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.decisions.withdrawals import faults, standing, verifications
from warpsmith.tuning.objective import costs
from warpsmith.tuning.tasks import VerifyPayload
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners
from worker.device.device_setup import hold_device
from worker.device.device_wait import WaitForDevice
from worker.device.process_context import Context
from worker.works.outcome import Done, baseline_of, job_of
from worker.works.stored_study import export_study

FINALISTS = 8
"""Limit on the best trials per workload that may be measured again; more than are ever needed. The best of
every template is kept beside them, for a fault of one may be in all of its configurations."""
OVERALL = ""
"""Key for results over all workloads; no workload has it."""


def verify(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Measure the winners again."""
    payload = row.payload
    assert isinstance(payload, VerifyPayload)
    with context.database.read() as session:
        job, measured = job_of(session, row), baseline_of(session, row)
        candidates = CandidateRepository(session).of_job(row.job_id, with_templates=True)
        earlier = verifications(TaskRepository(session).of_job(row.job_id))
        fallen = {(w.candidate, configuration_key(w.configuration)) for w in faults(earlier)}
        fallen |= {(c.id, "") for c in candidates if c.state is CandidateState.REJECTED}
        finalists = _finalists(job, candidates, TrialRepository(session).measured(row.job_id), fallen)
    PROGRESS.at("verification: taking the device")
    setup = context.device_setup()
    with hold_device(setup, WaitForDevice(context, row, lease)):
        result = verify_winners(
            job,
            setup.ports,
            finalists,
            ComparisonPlan(payload.pairs, measured.aa_widths),
            lease.alive,
            measured,
        )
    # The last slices began to write theirs, which takes about as long as this.
    PROGRESS.at("verification: writing the stored study")
    for candidate in candidates:
        export_study(context, row.job_id, candidate)
    if len(result.choices) < len(job.workloads):
        return Done(None)
    stands = standing([*earlier, result])
    assert stands is not None
    return Done(result, lambda session: JobRepository(session).set_verified(row.job_id, stands))


def _finalists(
    job: Job, candidates: Iterable[CandidateRow], trials: Iterable[TrialRow], fallen: Set[tuple[str, str]]
) -> list[Finalist]:
    """The best few trials of every workload, and overall if few must serve all; the rest is dropped.

    Args:
        fallen: candidate and configuration of those that a verification withdrew for a fault; `""`: of a
            candidate all.
    """
    best: dict[tuple[str, str], list[tuple[float, int, TrialRow]]] = defaultdict(list)
    for order, trial in enumerate(trials):
        assert isinstance(trial.outcome, Measured)
        if not fallen.isdisjoint(
            {(trial.candidate_id, ""), (trial.candidate_id, configuration_key(trial.configuration))}
        ):
            continue
        values = costs(job, trial.outcome.steady_timings)
        if job.objective.configurations is not None:
            values = {**values, OVERALL: trial.outcome.objective}
        for key, value in values.items():
            entry = (-value, -order, trial)
            for whose, most in (("", FINALISTS), (trial.candidate_id, 1)):
                kept = best[key, whose]
                heapq.heappush(kept, entry)
                if len(kept) > most:
                    heapq.heappop(kept)
    chosen = {entry[2].id: entry[2] for entry in itertools.chain.from_iterable(best.values())}
    templates = {c.id: c.template for c in candidates}
    finalists = []
    for trial in chosen.values():
        assert isinstance(trial.outcome, Measured)
        finalists.append(
            Finalist(trial.candidate_id, templates[trial.candidate_id], trial.configuration, trial.outcome)
        )
    return finalists
