"""What each kind of task does. Results and their effects are written by `worker.task_runner`."""

import heapq
import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from pydantic import BaseModel
from sqlalchemy.orm import Session

from agents.context import StepContext
from agents.external import NotYet, Question
from agents.model_budget import Cost
from agents.steps import Panel, run_step
from db.engine import utc_now
from db.lease import Lease
from db.proposal_pool import ProposalPool, SearchSlice
from db.repositories.agent_requests import OPEN, AgentRequestRepository
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.search_histories import HistoryRepository, Told
from db.repositories.trials import TrialRepository
from db.shared_search import SharedSearcher
from db.snapshot import elapsed_s, last_result, task_payload
from db.step_facts import step_facts
from db.tables import CandidateRow, TaskRow, TrialRow
from db.trial_sink import DatabaseSink
from warpsmith.domain.job import Job, Metric
from warpsmith.domain.memory import check_memory
from warpsmith.domain.outcome import Measured
from warpsmith.domain.state import TaskKind
from warpsmith.errors import InvalidInput
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks.tester_cases import check_proposals
from warpsmith.tuning.decisions.time_budget import verification_s
from warpsmith.tuning.objective import costs, times_us
from warpsmith.tuning.tasks import (
    BaselineResult,
    ChecksPayload,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyPayload,
    VerifyResult,
)
from warpsmith.tuning.timing.hardware_counters import counters_of
from warpsmith.tuning.timing.spare_time import SpareTime
from warpsmith.tuning.trials.slice import SliceLimits, run_slice
from warpsmith.tuning.winners.verify import Finalist, verify_winners
from worker.device_setup import open_session
from worker.device_wait import Hold
from worker.earlier_winners import earlier_starts
from worker.process_context import Context
from worker.step_ports import JobPurse, StepMailbox
from worker.stored_study import export_later, export_study
from worker.trial_reuse import adopt_known

FINALISTS = 8
"""Best trials of each workload that may be measured again; more than are ever needed."""
MOST_EARLIER = 200
"""Outcomes of earlier slices that a slice hears of, the latest."""
OVERALL = ""
"""No workload's key."""


STEP_SHARE = 0.5
"""Of the seconds a job has left, what one agent step may take."""


def _nothing(session: Session) -> None:
    """No effects."""


@dataclass(frozen=True)
class Done:
    """The result of a task, and what else belongs to the transaction that stores it."""

    result: BaseModel | None
    """None: the worker stops before the end; the task goes back to its queue."""
    effects: Callable[[Session], None] = _nothing


@dataclass(frozen=True)
class Parked:
    """The task waits for something outside."""

    until: datetime
    post: Callable[[Session], datetime | None]
    """Part of the transaction that parks the task: until when it waits, None to go on at once."""


def baseline(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Measure the user's kernel as it is, or try further cases on it."""
    job = _job(context, row)
    payload = task_payload(row)
    if isinstance(payload, ChecksPayload):
        with context.database.read() as session:
            known = last_result(session, row.job_id, TaskKind.BASELINE, BaselineResult)
        assert known is not None, "decide starts with the baseline"
        with open_session(context.device_setup(), job, Hold(context, row, lease)) as device_session:
            return Done(check_proposals(device_session, known, payload.cases))
    try:
        info = context.device_setup().ports.opener.info
        check_memory(job, [info], context.settings.job_memory_bytes)
    except InvalidInput as exc:
        return Done(BaselineResult(device=info, refused=str(exc)))
    with open_session(context.device_setup(), job, Hold(context, row, lease)) as device_session:
        began = time.monotonic()
        result = measure_baseline(device_session)
        if not result.refused:
            seconds = time.monotonic() - began
            result = result.model_copy(update={"counters": counters_of(device_session), "seconds": seconds})
    own_us = times_us(job, result.timings)
    return Done(result, lambda session: JobRepository(session).set_baseline(row.job_id, own_us))


def agent_step(context: Context, row: TaskRow, lease: Lease) -> "Done | Parked":
    """Ask an agent; a step that waits for somebody outside is parked."""
    payload = task_payload(row)
    assert isinstance(payload, StepPayload)
    with context.database.read() as session:
        facts = step_facts(session, row.job_id, payload)
        elapsed = elapsed_s(session, JobRepository(session).get(row.job_id))
    asked = StepContext(**vars(facts), include_dirs=context.settings.permitted_includes())
    left = facts.job.budget.seconds - verification_s(facts.job, facts.baseline) - elapsed
    seconds = max(1.0, left * STEP_SHARE)
    purse = JobPurse(context.database, row.job_id)
    mailbox = StepMailbox(context.database, row.id)
    try:
        panel = Panel(context.settings, purse, mailbox, seconds, lease.alive)
        result = run_step(payload, asked, panel)
    except NotYet as exc:
        question = exc.asked
        until = utc_now() + timedelta(seconds=min(seconds, context.settings.agent_external_timeout_s))
        return Parked(until, lambda session: _post(session, row, payload, question, until))
    if result.fallback and lease.stopping:
        return Done(None)
    spent = Cost(result.tokens, result.usd) - purse.booked
    return Done(result, lambda session: _record_step(session, row, payload, result, spent))


def search_slice(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Run trials of one candidate until the lease, the slice or the budget ends."""
    payload = task_payload(row)
    assert isinstance(payload, SlicePayload)
    job = _job(context, row)
    started = utc_now()
    with context.database.write() as session:
        candidate = CandidateRepository(session).get(payload.candidate)
        known = HistoryRepository(session).count_finished(candidate.id, row.id)
        ids = (row.job_id, candidate.id, row.id)
        leftover = TrialRepository(session).take_leftover(*ids, pooled=not payload.shared)
        measured = last_result(session, row.job_id, TaskKind.BASELINE, BaselineResult)
        elapsed = elapsed_s(session, JobRepository(session).get(row.job_id))
        starts = earlier_starts(session, candidate, known.all)
        # They say how workloads, and energy and time, relate.
        related = len(job.workloads) > 1 or job.objective.metric is Metric.ENERGY
        earlier = HistoryRepository(session).measured(candidate.id, MOST_EARLIER if related else 0)
    assert measured is not None, "decide starts with the baseline"
    if not known.all and not leftover:
        adopt_known(context, row, candidate, job, measured)
    # An earlier attempt at this very task may have finished some of what it was given.
    trials = payload.trials - known.of_task
    left = job.budget.seconds - verification_s(job, measured) - elapsed
    # Where nothing was tried it has been given what it needs, whatever is left.
    seconds = min(payload.seconds, left) if known.run else payload.seconds
    if trials <= 0 or seconds <= 0:
        export_later(context, row.job_id, candidate)
        return Done(SliceResult(feasible=candidate.feasible))
    setup = context.device_setup()
    history = partial(_history, context, candidate.id)
    # What an earlier attempt proposed and never finished goes through the searcher, so that it is not
    # proposed a second time.
    search = setup.search(job, candidate.template, history, leftover, starts, measured.aa_width)
    shared = None
    if payload.shared:
        most = payload.candidate_trials or candidate.trials + trials
        pool = ProposalPool(context.database, SearchSlice(*ids, most, started))
        shared = SharedSearcher(search.searcher, pool, leftover, lease.alive)
    limits = SliceLimits(
        seconds=min(seconds, context.settings.slice_s), trials=trials, compile_ahead=setup.compile_ahead
    )
    with open_session(setup, job, Hold(context, row, lease)) as device_session:
        sink = DatabaseSink(context.database, lease, row.job_id, candidate.id, payload.shared)
        try:
            searcher = shared or search.searcher
            gate = known.run == 0
            result = run_slice(
                device_session,
                candidate.template,
                measured,
                searcher,
                sink,
                limits,
                gate=gate,
                earlier=earlier,
                include_dirs=context.settings.permitted_includes(),
            )
        finally:
            if shared is not None:
                shared.close()
            sink.close()
    if shared is not None and (shared.gave_up or shared.spent):
        result = result.model_copy(update={"exhausted": False, "spent": shared.spent})
    export_later(context, row.job_id, candidate)
    result = result.model_copy(update={"feasible": search.feasible})
    return Done(result, lambda s: CandidateRepository(s).set_feasible(candidate.id, search.feasible))


def verify(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Measure the winners again."""
    payload = task_payload(row)
    assert isinstance(payload, VerifyPayload)
    job = _job(context, row)
    with context.database.read() as session:
        measured = last_result(session, row.job_id, TaskKind.BASELINE, BaselineResult)
        candidates = CandidateRepository(session).of_job(row.job_id, with_templates=True)
        elapsed = elapsed_s(session, JobRepository(session).get(row.job_id))
        finalists = _finalists(job, candidates, TrialRepository(session).measured(row.job_id))
    assert measured is not None, "decide starts with the baseline"
    for candidate in candidates:
        export_study(context, row.job_id, candidate)
    setup = context.device_setup()
    seconds = payload.seconds and job.budget.seconds - elapsed
    spare = SpareTime(seconds, len(job.workloads))
    with open_session(setup, job, Hold(context, row, lease)):
        result = verify_winners(
            job, setup.ports, finalists, measured.aa_width, payload.pairs, lease.alive, measured, spare
        )
    if len(result.choices) < len(job.workloads):
        return Done(None)
    chosen = {c.workload for c in result.choices if c.candidate is not None}
    best_us = {c.workload: c.best_us for c in result.comparisons if c.workload in chosen}
    return Done(result, lambda session: _publish(session, row.job_id, result, best_us))


def _job(context: Context, row: TaskRow) -> Job:
    with context.database.read() as session:
        return JobRepository(session).get(row.job_id, with_spec=True).spec


def _history(context: Context, candidate_id: str) -> list[Told]:
    with context.database.read() as session:
        return HistoryRepository(session).of(candidate_id)


def _record_step(
    session: Session, row: TaskRow, payload: StepPayload, result: StepResult, unbooked: Cost
) -> None:
    AgentStepRepository(session).add(row.job_id, row.id, payload, result)
    JobRepository(session).spend(row.job_id, unbooked.tokens, unbooked.usd)


def _post(
    session: Session, row: TaskRow, payload: StepPayload, asked: Question, until: datetime
) -> datetime | None:
    """Make the request where there is none; until when to wait, None where the answer has just come."""
    requests = AgentRequestRepository(session)
    request = requests.of_task(row.id, lock=True)
    if request is None:
        words = (payload.role, payload.round, asked.instructions, asked.question, asked.wanted, until)
        request = requests.add(row, *words)
        JobRepository(session).set_detail(row.job_id, f"waiting for an answer to agent request {request.id}")
    return request.deadline if request.state == OPEN else None


def _publish(session: Session, job_id: str, result: VerifyResult, best_us: dict[str, float]) -> None:
    JobRepository(session).set_verified(job_id, result.speedup, best_us)


def _finalists(job: Job, candidates: Iterable[CandidateRow], trials: Iterable[TrialRow]) -> list[Finalist]:
    """The best few trials of every workload, and over all where few must serve all; no more are kept."""
    best: dict[str, list[tuple[float, int, TrialRow]]] = {w.key: [] for w in job.workloads}
    best[OVERALL] = []
    for order, trial in enumerate(trials):
        assert isinstance(trial.outcome, Measured)
        values = costs(job, trial.outcome.timings)
        if job.objective.configurations is not None:
            values = {**values, OVERALL: trial.outcome.objective}
        for key, value in values.items():
            entry = (-value, -order, trial)
            if len(best[key]) < FINALISTS:
                heapq.heappush(best[key], entry)
            else:
                heapq.heappushpop(best[key], entry)
    kept = {entry[2].id: entry[2] for entry in itertools.chain.from_iterable(best.values())}
    templates = {c.id: c.template for c in candidates}
    finalists = []
    for trial in kept.values():
        assert isinstance(trial.outcome, Measured)
        finalists.append(
            Finalist(trial.candidate_id, templates[trial.candidate_id], trial.configuration, trial.outcome)
        )
    return finalists
