"""The task `slice`: trials of one candidate, until the slice, the lease or the budget ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from db.engine import now
from db.queue.lease import Lease
from db.queue.trial_sink import DatabaseSink
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.search_histories import FinishedCounts, HistoryRepository, Told
from db.repositories.trials import TrialRepository
from db.search.proposal_pool import ProposalPool, SearchSlice
from db.search.shared_search import SharedSearcher
from db.tables import CandidateRow, TaskRow
from db.views.snapshot import elapsed_s
from warpsmith.domain.jobs.job import Job, Metric
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.decisions.time_budget import search_s
from warpsmith.tuning.ports import Searcher
from warpsmith.tuning.tasks import JobBaseline, SlicePayload, SliceResult
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice
from worker.device.device_setup import Search, open_session
from worker.device.device_wait import WaitForDevice
from worker.device.process_context import Context
from worker.works.earlier_winners import earlier_starts
from worker.works.outcome import Done, baseline_of, job_of
from worker.works.stored_study import export_later
from worker.works.trial_reuse import adopt_known

MOST_EARLIER = 200
"""Limit on the latest outcomes of earlier slices from which a slice learns."""


@dataclass(frozen=True)
class _Start:
    """State of a search in the database when one of its slices starts."""

    job: Job
    candidate: CandidateRow
    baseline: JobBaseline
    finished: FinishedCounts
    leftover: Sequence[Configuration]
    """Configurations that an earlier attempt proposed and never finished."""
    starts: Sequence[Configuration]
    """Winners of the job's other candidates."""
    earlier: Sequence[Measured]
    """Outcomes of the candidate's earlier slices."""
    started: datetime
    elapsed_s: float
    """Seconds of the job's budget that are gone."""
    best: float | None
    """The best objective of any candidate; None: nothing was measured yet."""

    def trials(self, payload: SlicePayload) -> int:
        """Number of trials that the slice may have; an earlier attempt may have finished some."""
        return payload.trials - self.finished.of_task

    def seconds(self, payload: SlicePayload) -> float:
        """Seconds that the slice may have: all that it was given if no trial has run yet."""
        if not self.finished.run:
            return payload.seconds
        return min(payload.seconds, search_s(self.job, self.baseline, self.best, self.elapsed_s))


def search_slice(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Run trials of one candidate until the lease, the slice or the budget ends."""
    payload = row.payload
    assert isinstance(payload, SlicePayload)
    known = _known(context, row, payload)
    candidate = known.candidate
    if not known.finished.all and not known.leftover:
        adopt_known(context, row, candidate, known.job, known.baseline)
    if known.trials(payload) <= 0 or known.seconds(payload) <= 0:
        export_later(context, row.job_id, candidate)
        return Done(SliceResult())
    history = partial(_history, context, candidate.id)
    # The leftover goes through the searcher, so that it is not proposed a second time.
    search = context.device_setup().search(
        known.job, candidate.template, history, known.leftover, known.starts, known.baseline.least_width
    )
    shared = _shared(context, row, lease, known, search) if payload.shared else None
    result = _run(context, row, lease, known, shared or search.searcher)
    result = result.model_copy(update={"sampled": search.sampled})
    export_later(context, row.job_id, candidate)
    return Done(result, lambda s: CandidateRepository(s).set_feasible(candidate.id, search.feasible))


def _known(context: Context, row: TaskRow, payload: SlicePayload) -> _Start:
    with context.database.write() as session:
        job = job_of(session, row)
        candidate = CandidateRepository(session).get(payload.candidate)
        history = HistoryRepository(session)
        finished = history.count_finished(candidate.id, row.id)
        ids = (row.job_id, candidate.id, row.id)
        # Earlier outcomes say how workloads, and energy and time, relate.
        related = len(job.workloads) > 1 or job.objective.metric is Metric.ENERGY
        return _Start(
            job=job,
            candidate=candidate,
            baseline=baseline_of(session, row),
            finished=finished,
            leftover=TrialRepository(session).take_leftover(*ids, pooled=not payload.shared),
            starts=earlier_starts(
                session, candidate, finished.all, context.settings.remembers, context.settings.shares_lessons
            ),
            earlier=history.measured(candidate.id, MOST_EARLIER if related else 0),
            started=now(session),
            elapsed_s=elapsed_s(session, JobRepository(session).get(row.job_id)),
            best=CandidateRepository(session).best_objective(row.job_id),
        )


def _shared(context: Context, row: TaskRow, lease: Lease, known: _Start, search: Search) -> SharedSearcher:
    assert isinstance(row.payload, SlicePayload)
    candidate = known.candidate
    most = row.payload.candidate_trials or candidate.trials + known.trials(row.payload)
    pool = ProposalPool(context.database, SearchSlice(row.job_id, candidate.id, row.id, most, known.started))
    return SharedSearcher(search.searcher, pool, known.leftover, lease.alive)


def _run(context: Context, row: TaskRow, lease: Lease, known: _Start, searcher: Searcher) -> SliceResult:
    payload, setup = row.payload, context.device_setup()
    assert isinstance(payload, SlicePayload)
    limits = SliceLimits(
        seconds=min(known.seconds(payload), context.settings.slice_s),
        trials=known.trials(payload),
        compile_ahead=setup.compile_ahead,
    )
    start = SliceStart(
        gate=known.finished.run == 0,
        earlier=known.earlier,
        best=known.best,
        include_dirs=context.settings.permitted_includes(),
    )
    seed = context.seeds.of(row.job_id)
    with open_session(setup, known.job, WaitForDevice(context, row, lease), seed) as device_session:
        sink = DatabaseSink(context.database, lease, row.job_id, known.candidate.id, payload.shared)
        try:
            return run_slice(
                device_session, known.candidate.template, known.baseline, searcher, sink, limits, start
            )
        finally:
            if isinstance(searcher, SharedSearcher):
                searcher.close()
            sink.close()


def _history(context: Context, candidate_id: str) -> list[Told]:
    with context.database.read() as session:
        return HistoryRepository(session).of(candidate_id)
