"""Takes decisions: snapshot, decide and apply in one transaction under the job's lock."""

import logging

from sqlalchemy.orm import Session

from db.engine import Database
from db.message_names import AGENT_QUEUE, device_queue
from db.repositories.candidates import CandidateRepository
from db.repositories.device_waits import WaitRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.views.finished_lessons import learn
from db.views.snapshot import load_snapshot
from warpsmith.domain.jobs.job import SearcherName
from warpsmith.domain.state import CandidateState, JobState, TaskKind
from warpsmith.errors import NotFound
from warpsmith.logs import about
from warpsmith.search.spaces.shape_space import with_shapes
from warpsmith.settings import UNSERVED_S
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.end_reason import reason_of
from warpsmith.tuning.decisions.snapshot import (
    Action,
    AddCandidate,
    JobSnapshot,
    NoteWait,
    PinDevice,
    SetCandidate,
    SetJobState,
    StartTask,
)

MAX_DECISIONS = 20
"""Limit on consecutive decisions, far above the number that one event causes."""

log = logging.getLogger(__name__)


def advance(database: Database, job_id: str, unserved_s: float = UNSERVED_S) -> int:
    """Decide until nothing changes; returns the number of applied decisions.

    Calling it twice, or from two processes at once, has no further effect.

    Args:
        unserved_s: see `load_snapshot`.
    """
    with about(job=job_id):
        return _advance(database, job_id, unserved_s)


def _advance(database: Database, job_id: str, unserved_s: float) -> int:
    for count in range(MAX_DECISIONS):
        with database.write() as session:
            jobs = JobRepository(session)
            jobs.lock(job_id)
            try:
                snapshot = load_snapshot(session, job_id, unserved_s)
            except NotFound:
                log.warning("a message names a job that is not there")
                return count
            actions = decide(snapshot)
            if not apply_actions(session, job_id, snapshot, actions):
                return count
        if any(isinstance(a, SetJobState) and a.state is JobState.DONE for a in actions):
            _learn(database, job_id)
    log.error("the job took %d decisions in a row", MAX_DECISIONS)
    return MAX_DECISIONS


def _learn(database: Database, job_id: str) -> None:
    try:
        with database.write() as session:
            learn(session, job_id)
    except Exception:  # a job has ended whether or not it teaches anything
        log.exception("nothing is kept of what the job taught")


def apply_actions(session: Session, job_id: str, snapshot: JobSnapshot, actions: tuple[Action, ...]) -> bool:
    """Write the decided actions; True if anything changed beyond the detail."""
    changed = False
    state = snapshot.state
    for action in actions:
        match action:
            case PinDevice():
                changed |= JobRepository(session).pin(job_id, action.device_class)
            case StartTask():
                queue = _queue(snapshot, action.kind)
                TaskRepository(session).enqueue(job_id, action.kind, queue, action.payload)
                if action.kind is not TaskKind.AGENT_STEP:
                    WaitRepository(session).begin(job_id)
                changed = True
            case AddCandidate():
                _add_candidate(session, job_id, snapshot, action)
                changed = True
            case SetCandidate():
                changed |= CandidateRepository(session).set_state(action.id, action.state)
                if action.state is not CandidateState.SEARCHING:
                    TrialRepository(session).drop_pooled(action.id)
            case NoteWait():
                WaitRepository(session).note(job_id, action.words)
            case SetJobState():
                changed |= _set_state(session, job_id, snapshot, state, action)
                state = action.state
    return changed


def _queue(snapshot: JobSnapshot, kind: TaskKind) -> str:
    if kind is TaskKind.AGENT_STEP:
        return AGENT_QUEUE
    assert snapshot.device_class is not None, "decide pins the device first"
    return device_queue(snapshot.device_class)


def _add_candidate(session: Session, job_id: str, snapshot: JobSnapshot, action: AddCandidate) -> None:
    job = snapshot.job
    template = action.template
    if job.searcher is SearcherName.SHAPES:
        template = with_shapes(template, job)
    CandidateRepository(session).add(
        job_id,
        action.number,
        action.round,
        action.parent,
        template,
        action.declined,
        action.made_by,
    )
    JobRepository(session).set_round(job_id, action.round)


def _set_state(
    session: Session, job_id: str, snapshot: JobSnapshot, state: JobState, action: SetJobState
) -> bool:
    jobs = JobRepository(session)
    if action.state is state:
        jobs.set_detail(job_id, action.detail)
        return False
    reason = reason_of(snapshot, action.state, action.detail) if action.state.is_terminal else None
    return jobs.move(job_id, state, action.state, action.detail, reason)
