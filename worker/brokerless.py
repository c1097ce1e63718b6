"""Works from the database alone, without messages: what a pool does while the broker is away.

Started by `worker.main` beside each Celery pool once the broker has been silent for a while, and ended
when it answers again. Slower than the bell, and one process a pool; correct for the same reasons,
because tasks are claimed in the database either way.
"""

import logging
import signal
import threading
from collections.abc import Sequence
from types import FrameType

from sqlalchemy.exc import DBAPIError

from db.message_names import ADVANCE, COMPILE_PREFIX, CONTROL_QUEUE
from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from warpsmith.errors import LeaseLost
from worker import advance, compile_node, task_runner
from worker.process_context import Context, context

POLL_S = 0.5
"""How often an idle process looks for work."""
OVERDUE_S = 1.0
"""A bell that no relay could ring for so long is answered here."""
IDLE_S = 2.0
"""A job that nothing is open for, and that was not rung for so long, is decided about again."""

log = logging.getLogger(__name__)


def serve(queues: Sequence[str]) -> None:
    """Work until SIGTERM; a task that has begun is ended first."""
    stop = threading.Event()

    def handle(_signum: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    log.warning("the broker is silent; working from the database on %s", ", ".join(queues))
    made = context()
    while not stop.is_set():
        try:
            busy = step(made, queues)
        except (DBAPIError, LeaseLost) as exc:
            log.warning("working from the database waits: %s", type(exc).__name__)
            busy = False
        if not busy:
            stop.wait(POLL_S)


def step(made: Context, queues: Sequence[str]) -> bool:
    """Everything that waits once; False where nothing did."""
    busy = False
    if CONTROL_QUEUE in queues:
        busy = decide_all(made) > 0
    for queue in queues:
        if queue.startswith(COMPILE_PREFIX):
            busy |= compile_node.run_next(made, queue)
        elif queue != CONTROL_QUEUE:
            busy |= task_runner.run_next(made, queue)
    return busy


def decide_all(made: Context) -> int:
    """Take the decisions that nobody could be rung for; returns for how many jobs."""
    with made.database.write() as session:
        JobRepository(session).ring_idle(IDLE_S)
        jobs = set(OutboxRepository(session).take_overdue(ADVANCE, OVERDUE_S))
    # A crash between that commit and the decision leaves an idle job, which is rung again.
    for job_id in jobs:
        advance.advance(made.database, job_id, made.settings.unserved_limit_s)
    return len(jobs)
