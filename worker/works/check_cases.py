"""The task `check_cases`: a tester's cases, tried on the user's kernel."""

from db.queue.lease import Lease
from db.tables import TaskRow
from warpsmith.tuning.checks.tester_cases import check_proposals
from warpsmith.tuning.tasks import CasesPayload
from worker.device.device_setup import open_session
from worker.device.device_wait import WaitForDevice
from worker.device.process_context import Context
from worker.works.outcome import Done, baseline_of, job_of


def check_cases(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Find out on which of the cases the user's kernel is right."""
    assert isinstance(row.payload, CasesPayload)
    with context.database.read() as session:
        job, known = job_of(session, row), baseline_of(session, row)
    seed = context.seeds.of(row.job_id)
    with open_session(
        context.device_setup(), job, WaitForDevice(context, row, lease), seed
    ) as device_session:
        return Done(check_proposals(device_session, known, row.payload.cases))
