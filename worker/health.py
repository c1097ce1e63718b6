"""Whether a worker of this machine is at work: `python -m worker.health`, the health check of its image."""

import os
import sys

from sqlalchemy.exc import DBAPIError

from db.engine import open_database
from db.repositories.workers import ALIVE_S, WorkerRepository
from warpsmith.settings import settings


def main() -> int:
    """0 where a worker of this host was heard of lately; 1 where none was, or the database is away."""
    database = open_database(settings())
    host = os.uname().nodename
    try:
        with database.read() as session:
            found = any(w.hostname == host for w in WorkerRepository(session).seen_lately(ALIVE_S))
    except DBAPIError as exc:
        sys.stderr.write(f"the database does not answer: {type(exc).__name__}\n")
        return 1
    finally:
        database.dispose()
    if not found:
        sys.stderr.write(f"no worker of {host} was heard of for {ALIVE_S:g} s\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
