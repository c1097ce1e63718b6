"""The task `baseline`: the user's kernel as it is, checked, timed and profiled."""

import time

from db.queue.lease import Lease
from db.repositories.jobs import JobRepository
from db.tables import TaskRow
from warpsmith.domain.jobs.memory import check_memory
from warpsmith.errors import InvalidInput
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import times_us
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.timing.hardware_counters import counters_of
from worker.device.device_setup import open_session
from worker.device.device_wait import WaitForDevice
from worker.device.process_context import Context
from worker.works.outcome import Done, job_of


def baseline(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Measure the user's kernel; a job that needs more memory than there is, is refused."""
    with context.database.read() as session:
        job = job_of(session, row)
    info = context.device_setup().ports.opener.info
    try:
        check_memory(job, [info], context.settings.job_memory_bytes)
    except InvalidInput as exc:
        return Done(BaselineResult(device=info, refused=str(exc)))
    seed = context.seeds.of(row.job_id)
    with open_session(
        context.device_setup(), job, WaitForDevice(context, row, lease), seed
    ) as device_session:
        began = time.monotonic()
        result = measure_baseline(device_session)
        if not result.refused:
            seconds = time.monotonic() - began
            counters = counters_of(device_session, timings=result.timings)
            result = result.model_copy(update={"counters": counters, "seconds": seconds})
    own_us = times_us(job, result.timings)
    return Done(result, lambda session: JobRepository(session).set_baseline(row.job_id, own_us))
