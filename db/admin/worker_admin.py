"""Operations of an operator on workers, in the database of the settings: `warpsmith drain`."""

from db import migrate
from db.engine import open_database
from db.repositories.workers import WorkerRepository
from warpsmith.settings import Settings, settings


def drain(worker_id: str, current: Settings | None = None) -> str:
    """Tell a worker to finish its current task and stop; returns the name of its machine.

    Raises:
        NotFound: no running worker has that id.
        Unavailable: the schema of the database does not fit.
    """
    chosen = current or settings()
    migrate.require_current(chosen.sqlalchemy_url)
    database = open_database(chosen)
    try:
        with database.write() as session:
            return WorkerRepository(session).drain(worker_id).hostname
    finally:
        database.dispose()
