"""The task `profile`: hardware counters of a candidate's best configuration."""

from db.queue.lease import Lease
from db.repositories.candidates import CandidateRepository
from db.repositories.trials import TrialRepository
from db.tables import TaskRow
from warpsmith.tuning.analysis.search_facts import best_of
from warpsmith.tuning.tasks import ProfilePayload, ProfileResult
from warpsmith.tuning.timing.hardware_counters import counters_of
from worker.device.device_setup import open_session
from worker.device.device_wait import WaitForDevice
from worker.device.process_context import Context
from worker.works.outcome import Done, job_of


def profile(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Profile the best configuration of a candidate, if any was measured."""
    assert isinstance(row.payload, ProfilePayload)
    with context.database.read() as session:
        job = job_of(session, row)
        template = CandidateRepository(session).get(row.payload.candidate).template
        finished = TrialRepository(session).finished(row.payload.candidate)
    best = best_of([(t.configuration, t.outcome) for t in finished if t.outcome is not None])
    if best is None:
        return Done(ProfileResult())
    with open_session(context.device_setup(), job, WaitForDevice(context, row, lease)) as device_session:
        counters = counters_of(device_session, template, best[0], best[1].timings)
        return Done(ProfileResult(counters=counters))
