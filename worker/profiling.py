"""Tasks of the kind baseline: the user's kernel, and the counters of a candidate's best configuration."""

from db.lease import Lease
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository
from db.snapshot import last_result, task_payload
from db.tables import TaskRow
from warpsmith.domain.state import TaskKind
from warpsmith.tuning.analysis.search_facts import best_of
from warpsmith.tuning.tasks import BaselineResult, ChecksPayload
from warpsmith.tuning.timing.hardware_counters import counters_of
from worker import work
from worker.device_setup import open_session
from worker.device_wait import Hold
from worker.process_context import Context


def baseline(context: Context, row: TaskRow, lease: Lease) -> work.Done:
    """Measure the user's kernel, try further cases on it, or profile the best of a candidate."""
    payload = task_payload(row)
    if not isinstance(payload, ChecksPayload) or payload.profiled is None:
        return work.baseline(context, row, lease)
    with context.database.read() as session:
        job = JobRepository(session).get(row.job_id, with_spec=True).spec
        known = last_result(session, row.job_id, TaskKind.BASELINE, BaselineResult)
        template = CandidateRepository(session).get(payload.profiled).template
        finished = TrialRepository(session).finished(payload.profiled)
    assert known is not None, "decide starts with the baseline"
    best = best_of([(t.configuration, t.outcome) for t in finished if t.outcome is not None])
    if best is None:
        return work.Done(known)
    with open_session(context.device_setup(), job, Hold(context, row, lease)) as device_session:
        counted = counters_of(device_session, template, best[0])
    return work.Done(known.model_copy(update={"counted": (*known.counted, counted)}))
