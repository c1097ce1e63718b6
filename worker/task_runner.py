"""Runs one task: claim it, work under a lease, and store the result with its message in one transaction."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from opentelemetry.trace import Span, StatusCode
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from db.queue.broker import relay
from db.queue.lease import Lease
from db.repositories.device_waits import WaitRepository
from db.repositories.events import EventRepository
from db.repositories.fair_turns import Yield
from db.repositories.outbox import OutboxRepository
from db.repositories.tasks import DATABASE_AWAY, TaskRepository
from db.repositories.workers import WorkerRepository
from db.tables import TaskRow
from warpsmith.domain.state import TaskKind
from warpsmith.errors import ChildDied, DeviceSick, InvalidInput, LeaseLost, Unavailable
from warpsmith.logs import about
from warpsmith.processes.stop_children import recall, resume
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.system.storage_errors import cause_of
from warpsmith.system.tracing import job_span
from warpsmith.tuning.tasks import SliceResult
from worker.advance import advance
from worker.device.device_wait import Stopping
from worker.device.process_context import Context
from worker.stage_watch import StageWatch
from worker.works.agent_step import agent_step
from worker.works.baseline import baseline
from worker.works.check_cases import check_cases
from worker.works.outcome import Deferred, Done
from worker.works.profile import profile
from worker.works.search_slice import search_slice
from worker.works.tool import tool
from worker.works.verify import verify

STORE_AGAIN_S = 0.5
PATIENCE_S = 0.5
"""Seconds that a device waits for a started job before it starts another one of the same tenant."""
LOOK_AGAIN_S = 0.02
STALLED = "stalled"
"""Cause of the failure of an attempt that stood still."""
STALLED_STATUS = 70
"""Exit status of a process that is held by such an attempt."""

log = logging.getLogger(__name__)

Claimed = TaskRow | Yield | None
Worker = Callable[[Context, TaskRow, Lease], Done | Deferred]

WORK: dict[TaskKind, Worker] = {
    TaskKind.BASELINE: baseline,
    TaskKind.CHECK_CASES: check_cases,
    TaskKind.PROFILE: profile,
    TaskKind.AGENT_STEP: agent_step,
    TaskKind.TOOL: tool,
    TaskKind.SLICE: search_slice,
    TaskKind.VERIFY: verify,
}


@dataclass(frozen=True)
class Failure:
    """Reason why an attempt brought no result."""

    cause: str
    detail: str
    final: bool = False
    """True if another attempt cannot help."""


def run_task(context: Context, task_id: str) -> bool:
    """Run a task; False if another worker has or had it, which is no error."""
    return _run(context, _claim(context, lambda tasks, w, lease_s: tasks.claim(task_id, w, lease_s)))


def run_next(context: Context, queue: str) -> bool:
    """Run the most urgent task of a queue; False if none waits there."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = _claim_next(context, queue, PATIENCE_S if time.monotonic() < deadline else 0.0)
        if not isinstance(found, Yield):
            return _run(context, found)
        time.sleep(LOOK_AGAIN_S)


def answer(context: Context, task_id: str) -> bool:
    """Handle the message for a task: run the most urgent task of its queue, which may be another one.

    Every waiting task has a message of its own, so none is left behind; a lost message is compensated by the
    next one.
    """
    with context.database.read() as session:
        queue = TaskRepository(session).queue_of(task_id)
    return queue is not None and (run_next(context, queue) or run_task(context, task_id))


def _run(context: Context, row: Claimed) -> bool:
    settings = context.settings
    if not isinstance(row, TaskRow):
        return False
    assert row.lease_token is not None
    times = (settings.lease_s, settings.renew_s)
    lease = Lease(context.database, row.id, row.lease_token, context.worker_id, *times, on_lost=recall)
    abandon = partial(_abandon, context, row)
    facts: dict[str, str | int | float] = {
        "task": row.id,
        "attempt": row.attempt,
        "worker": context.worker_id,
    }
    with about(job=row.job_id, task=row.id), job_span(row.kind.value, row.job_id, **facts) as span:
        log.info("%s begins, attempt %d", row.kind.value, row.attempt)
        try:
            with lease, StageWatch(context.database, row.job_id, settings.stall_limit_s, abandon) as watch:
                outcome = _watched(context, row, lease, watch)
            _describe(span, outcome)
            _store_patiently(context, row, row.lease_token, outcome)
            _decide(context, row.job_id)
        except LeaseLost:
            log.info("another worker has the task now, or its job has ended")
        finally:
            resume()
        notify(context)
    return True


def _describe(span: Span, outcome: Done | Deferred | Failure) -> None:
    """Record the outcome of an attempt in its span."""
    if isinstance(outcome, Failure):
        span.set_status(StatusCode.ERROR, outcome.cause)
    elif isinstance(outcome, Done) and isinstance(outcome.result, SliceResult):
        span.set_attribute("warpsmith.trials", outcome.result.trials)


def notify(context: Context) -> None:
    """Publish the messages of the last transaction, so that nobody waits for the maintenance loop."""
    relay(context.database, context.notifier)


def _decide(context: Context, job_id: str) -> None:
    """Decide about the job at once: the message for it may wait behind those of many jobs, and meanwhile its
    device would start another one."""
    try:
        advance(context.database, job_id, context.settings.unserved_limit_s)
    except DBAPIError as exc:
        context.database.waits("a decision", exc)


def _claim_next(context: Context, queue: str, patience_s: float) -> Claimed:
    return _claim(context, lambda tasks, w, lease_s: tasks.claim_next(queue, w, lease_s, patience_s))


def _claim(context: Context, claim: Callable[[TaskRepository, str, float], Claimed]) -> Claimed:
    with context.database.write() as session:
        workers = WorkerRepository(session)
        if workers.is_stopping(context.worker_id):
            return None
        if context.setup is not None:
            device = context.setup.ports.opener.info
            if workers.has_put_aside(context.worker_id, device):
                return None
        claimed = claim(TaskRepository(session), context.worker_id, context.settings.lease_s)
        if isinstance(claimed, TaskRow):
            WaitRepository(session).count(0.0, claimed.id)
        return claimed


def _attempt(context: Context, row: TaskRow, lease: Lease) -> Done | Deferred | Failure:
    try:
        return WORK[row.kind](context, row, lease)
    except LeaseLost:
        raise
    except Stopping:
        return Done(None)
    except InvalidInput as exc:
        return Failure("invalid input", str(exc), final=True)
    except DeviceSick as exc:
        _quarantine(context, str(exc))
        return Failure("device", str(exc))
    except ChildDied as exc:
        return Failure(exc.cause, exc.detail)
    except Unavailable as exc:
        return Failure("unavailable", str(exc))
    except MemoryError as exc:
        return Failure("memory", f"the worker has too little for this job: {exc}", final=True)
    except (InterfaceError, OperationalError) as exc:
        return Failure(DATABASE_AWAY, cause_of(exc))
    except Exception as exc:
        log.exception("task %s failed", row.id)
        return Failure("error", f"{type(exc).__name__}: {exc}")


def _watched(context: Context, row: TaskRow, lease: Lease, watch: StageWatch) -> Done | Deferred | Failure:
    """The outcome of an attempt; a failure if it was ended for standing still.

    Raises:
        LeaseLost: another worker has the task, or its job has ended.
    """
    PROGRESS.at(row.kind.value)
    try:
        outcome = _attempt(context, row, lease)
    except LeaseLost:
        if lease.lost or not watch.stalled:
            raise
        return Failure(STALLED, watch.stalled)
    return Failure(STALLED, watch.stalled) if watch.stalled and isinstance(outcome, Failure) else outcome


def _abandon(context: Context, row: TaskRow, words: str) -> None:
    """Fail an attempt that cannot be ended, and end this process, which it holds."""
    assert row.lease_token is not None
    try:
        _store(context, row, row.lease_token, Failure(STALLED, words))
    except (DBAPIError, LeaseLost) as exc:
        log.warning("the task returns when its lease runs out: %s", cause_of(exc))
    context.end_process(STALLED_STATUS)


def _quarantine(context: Context, words: str) -> None:
    """Make this worker take nothing more for its device until it is restarted."""
    device = context.device_setup().ports.opener.info
    log.error("%s is put aside: %s", device.name, words)
    with context.database.write() as session:
        WorkerRepository(session).put_aside(context.worker_id, device, words)


def _store_patiently(context: Context, row: TaskRow, token: str, outcome: Done | Deferred | Failure) -> None:
    """Store a result, and wait for an unavailable database as long as the lease allows."""
    deadline = time.monotonic() + context.settings.lease_s
    while True:
        try:
            _store(context, row, token, outcome)
            return
        except (InterfaceError, OperationalError) as exc:
            if time.monotonic() > deadline:
                raise
            context.database.waits("the result", exc)
            time.sleep(STORE_AGAIN_S)


def _store(context: Context, row: TaskRow, token: str, outcome: Done | Deferred | Failure) -> None:
    with context.database.write() as session:
        tasks = TaskRepository(session)
        if isinstance(outcome, Failure):
            state = tasks.fail(
                row.id,
                token,
                outcome.cause,
                outcome.detail,
                context.settings.max_attempts,
                final=outcome.final,
            )
            _tell(session, row, state.value, f"{outcome.cause}: {outcome.detail}")
        elif isinstance(outcome, Deferred):
            until = outcome.post(session)
            if until is None:
                tasks.give_back(context.worker_id, token)
            else:
                tasks.defer(row.id, token, until)
                _tell(session, row, "queued", "waiting for an answer from outside")
        elif outcome.result is None:
            if not tasks.give_back(context.worker_id, token):
                raise LeaseLost(f"task {row.id}")
            _tell(session, row, "queued", "the worker is stopping")
        else:
            tasks.finish(row.id, token, outcome.result)
            outcome.effects(session)
            _tell(session, row, "done", "")
            OutboxRepository(session).add_advance(row.job_id)


def _tell(session: Session, row: TaskRow, state: str, detail: str) -> None:
    data = {"task": row.id, "kind": row.kind.value, "state": state, "detail": detail[:500]}
    EventRepository(session).add(row.job_id, "task", data)
