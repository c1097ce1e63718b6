"""The Celery application of the worker's pools."""

from typing import Any

from celery import signals

from db.queue.broker import celery_app
from warpsmith.processes.parent_death import die_with_parent
from warpsmith.settings import settings
from warpsmith.system import tracing

app = celery_app(settings())
app.set_default()


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _keep_our_logging(**_: Any) -> None:
    """Celery sets up no logging if this signal has a handler; `worker.pool` has set it up."""


@signals.worker_process_init.connect  # type: ignore[untyped-decorator]
def _begin(**_: Any) -> None:
    die_with_parent()
    tracing.configure("warpsmith-worker")
