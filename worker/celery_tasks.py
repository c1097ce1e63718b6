"""Celery's entry points. A message carries an id; everything else is in the database."""

import time
from collections.abc import Callable

from sqlalchemy.exc import InterfaceError, OperationalError

from db.message_names import ADVANCE, COMPILE, DELIVER, RUN_TASK
from worker import advance, compile_node, deliver, task_runner
from worker.celery_app import app
from worker.device.process_context import context

AWAY_S = 1.0
"""Pause in seconds after a message that found no database, so that a queue is not emptied in vain."""


@app.task(name=RUN_TASK)  # type: ignore[untyped-decorator]
def run_task(task_id: str) -> None:
    """Claim a task, run it, store the result."""
    _patiently(lambda: task_runner.answer(context(), task_id))


@app.task(name=ADVANCE)  # type: ignore[untyped-decorator]
def advance_job(job_id: str) -> None:
    """Take the next decisions about a job."""
    _patiently(lambda: _advance(job_id))


@app.task(name=COMPILE)  # type: ignore[untyped-decorator]
def compile_kernel(key: str) -> None:
    """Compile a kernel for a device worker of the fleet."""
    _patiently(lambda: compile_node.answer(context(), key))


@app.task(name=DELIVER)  # type: ignore[untyped-decorator]
def deliver_events(webhook_id: str) -> None:
    """Send events to a webhook."""
    _patiently(lambda: deliver.answer(context(), webhook_id))


def _advance(job_id: str) -> None:
    advance.advance(context().database, job_id, context().settings.unserved_limit_s)
    task_runner.notify(context())


def _patiently(work: Callable[[], object]) -> None:
    """Run the work; a message lost while the database is unavailable is sent again later."""
    try:
        work()
    except (InterfaceError, OperationalError) as exc:
        context().database.waits("a message", exc)
        time.sleep(AWAY_S)
