"""Health check of a worker image: `python -m worker.health` looks for a running worker of this machine."""

import os
import sys

from sqlalchemy.exc import DBAPIError

from db.engine import open_database
from db.repositories.workers import ALIVE_S, WorkerRepository
from warpsmith.settings import settings
from warpsmith.system.storage_errors import cause_of


def main() -> int:
    """0 if a worker of this host was seen recently; 1 if none was, or the database is unavailable."""
    database = open_database(settings())
    host = os.uname().nodename
    try:
        with database.read() as session:
            found = any(w.hostname == host for w in WorkerRepository(session).seen_lately(ALIVE_S))
    except DBAPIError as exc:
        sys.stderr.write(f"the database does not answer: {cause_of(exc)}\n")
        return 1
    finally:
        database.dispose()
    if not found:
        sys.stderr.write(f"no worker of {host} was heard of for {ALIVE_S:g} s\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
