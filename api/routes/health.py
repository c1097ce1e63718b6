"""Routes that report the health of the service."""

from functools import partial

from fastapi import APIRouter, Request
from sqlalchemy import text

from api.live.shared_polls import Shared
from api.requests.problems import responses
from api.routes.dependencies import CurrentSettings, FleetDatabase
from db.admin.program_version import VERSION
from db.engine import Database
from db.views import result_views
from warpsmith import __version__
from warpsmith.errors import Unavailable
from warpsmith.http_models import NO_WORKER, Health
from warpsmith.settings import Settings

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def healthz() -> Health:
    """Reports that this process responds."""
    return Health(status="ok", version=__version__)


@router.get("/readyz", responses=responses(503))
async def readyz(request: Request, database: FleetDatabase, settings: CurrentSettings) -> Health:
    """Reports that jobs can be accepted and run: database, schema, and at least one living worker."""
    shared: Shared[Health] = request.app.state.readiness
    return await shared.get(partial(_look, database, settings))


def _look(database: Database, settings: Settings) -> Health:
    # Most processes are never asked, and it imports Alembic.
    from db import migrate

    migrate.require_current(settings.sqlalchemy_url)
    with database.read() as session:
        session.execute(text("SELECT 1"))
        alive = [w.version for w in result_views.worker_list(session).items if w.alive]
        if not alive:
            raise Unavailable(NO_WORKER)
        if VERSION not in alive:
            words = f"this API is of version {VERSION}, all living workers of {', '.join(sorted(set(alive)))}"
            raise Unavailable(f"{words}; start APIs and workers of one version")
    return Health(status="ready", version=__version__)
