"""Works from the database alone, without messages, while the broker is unavailable.

`worker.main` starts it beside each Celery pool once the broker has been silent for a while, and ends it when
the broker responds again. It is slower than messages and has one process per pool. It is correct for the same
reason, because tasks are claimed in the database either way.
"""

import logging
from collections.abc import Sequence

from sqlalchemy.exc import DBAPIError

from db.message_names import ADVANCE, COMPILE_PREFIX, CONTROL_QUEUE, WEBHOOK_QUEUE
from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from warpsmith.errors import LeaseLost
from worker import advance, compile_node, deliver, task_runner
from worker.device.process_context import Context, context
from worker.stop_request import StopRequest

POLL_S = 0.5
"""Seconds between looks for work of an idle process."""
OVERDUE_S = 1.0
"""Seconds after which a message that no relay could publish is handled here."""
IDLE_S = 2.0
"""Seconds after which a job without open work and notification is decided about again."""

log = logging.getLogger(__name__)


def serve(queues: Sequence[str]) -> None:
    """Work until SIGTERM; a running task is finished first."""
    stop = StopRequest()
    stop.stop_on_signals()
    log.warning("the broker is silent; working from the database on %s", ", ".join(queues))
    made = context()
    busy = True
    while not stop.wait(0.0 if busy else POLL_S):
        try:
            busy = step(made, queues)
        except (DBAPIError, LeaseLost) as exc:
            made.database.waits("work without a broker", exc)
            busy = False


def step(made: Context, queues: Sequence[str]) -> bool:
    """Handle everything that waits, once; False if nothing did."""
    busy = False
    if CONTROL_QUEUE in queues:
        busy = decide_all(made) > 0
    for queue in queues:
        if queue.startswith(COMPILE_PREFIX):
            busy |= compile_node.run_next(made, queue)
        elif queue == WEBHOOK_QUEUE:
            busy |= deliver.run_next(made)
        elif queue != CONTROL_QUEUE:
            busy |= task_runner.run_next(made, queue)
    return busy


def decide_all(made: Context) -> int:
    """Take the pending decisions for which no message could be sent; returns the number of jobs."""
    with made.database.write() as session:
        JobRepository(session).notify_idle(IDLE_S)
        jobs = set(OutboxRepository(session).take_overdue(ADVANCE, OVERDUE_S))
    # A crash between that commit and the decision leaves an idle job, which is notified again.
    for job_id in jobs:
        advance.advance(made.database, job_id, made.settings.unserved_limit_s)
    return len(jobs)
