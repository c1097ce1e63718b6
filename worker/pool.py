"""Celery pool: `python -m worker.pool --queues control,agents --concurrency 2`.

`worker.main` starts it with the id of its worker row and, if it serves device queues, its device. Children of
the pool run tasks; they never load a device library.
"""

import argparse
import sys
import warnings

from celery.exceptions import SecurityWarning

from warpsmith import logs
from warpsmith.processes.parent_death import end_with_parent
from warpsmith.system import tracing
from worker import (
    brokerless,
    celery_tasks,  # noqa: F401  registers the tasks
)
from worker.celery_app import app


def command(queues: str, concurrency: int, name: str, threads: bool = False) -> list[str]:
    """Arguments of `celery worker`."""
    return [
        "--quiet",
        "worker",
        f"--pool={'threads' if threads else 'prefork'}",
        f"--concurrency={concurrency}",
        f"--queues={queues}",
        f"--hostname={name}@%h",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "--loglevel=WARNING",
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run until told to stop or until the parent ends."""
    parser = argparse.ArgumentParser(prog="python -m worker.pool", description=__doc__)
    parser.add_argument("--queues", required=True)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--name", default="pool")
    parser.add_argument("--threads", action="store_true", help="threads of one process instead of processes")
    parser.add_argument("--direct", action="store_true", help="without the broker; see worker.direct")
    options = parser.parse_args(arguments)
    end_with_parent()
    logs.configure()
    if options.direct:
        tracing.configure("warpsmith-worker")
        brokerless.serve(options.queues.split(","))
        return
    # Kernels run in confined children, and messages are names and ids: the warning about root and pickle
    # would come once a pool.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app.worker_main(command(options.queues, options.concurrency, options.name, options.threads))


if __name__ == "__main__":
    main()
    sys.exit(0)
