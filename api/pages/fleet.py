"""The fleet: workers, devices, queues, who holds what; and draining."""

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Request, Response
from fastapi.responses import RedirectResponse

from api.pages.rendering import page, page_router
from api.requests.auth import CurrentCaller, allow
from api.routes.dependencies import SLOT, FleetDatabase, FleetSession
from db.api_keys import KeyScope
from db.repositories.workers import ALIVE_S, WorkerRepository
from db.views.fleet_view import fleet
from warpsmith.http_models import NO_NUL

router = page_router()


@router.get("/fleet", dependencies=[*allow(KeyScope.READ), SLOT])
def shown(request: Request, session: FleetSession, caller: CurrentCaller) -> Response:
    """The fleet, as far as the key may see it: jobs of other tenants have neither name nor link."""
    found = fleet(session)
    return page(
        request,
        "fleet.html.jinja",
        fleet=found,
        alive={w.id for w in found.workers if w.last_seen > found.at - timedelta(seconds=ALIVE_S)},
        held={w.id: [h for h in found.held if h.worker == w.id] for w in found.workers},
        operates=KeyScope.ADMIN.value in caller.scopes,
    )


@router.post("/fleet/{worker_id}/drain", dependencies=allow(KeyScope.ADMIN))
def drain(
    worker_id: Annotated[str, Path(max_length=64, pattern=NO_NUL)], database: FleetDatabase
) -> Response:
    """Tell a worker to finish its current task and stop."""
    with database.write() as session:
        WorkerRepository(session).drain(worker_id)
    return RedirectResponse("/fleet", 303)
