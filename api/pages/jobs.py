"""The page of jobs, and that of the winners which they left."""

import re
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, Response

from api.pages.rendering import page, page_router
from api.requests.auth import allow
from api.requests.query_names import LABEL
from api.routes.dependencies import SLOT, ReadSession
from db.api_keys import KeyScope
from db.repositories.events import EventRepository
from db.repositories.jobs import JobFilter
from db.views import result_views
from db.views.memory_views import registry_list
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
from warpsmith.http_models import NO_NUL

router = page_router()
PER_PAGE = 50
Word = Annotated[str, Query(max_length=190, pattern=NO_NUL)]


async def asked_for(state: Word = "", label: Word = "", name: Word = "", device: Word = "") -> JobFilter:
    """The filter of the form, whose empty fields ask for nothing.

    Raises:
        InvalidInput: a field is of another form.
    """
    if state and state not in list(JobState):
        raise InvalidInput("state", f"there is no state {state!r}; choose one of {', '.join(JobState)}")
    if label and not re.fullmatch(LABEL, label):
        raise InvalidInput("label", "write it as key=value")
    key, _, value = label.partition("=")
    return JobFilter([JobState(state)] if state else (), {key: value} if label else {}, name, device)


@router.get("/", dependencies=[*allow(KeyScope.READ), SLOT])
def jobs(
    request: Request,
    session: ReadSession,
    only: Annotated[JobFilter, Depends(asked_for)],
    after: Word = "",
) -> Response:
    """Jobs of the tenant, newest first, as far as the filters let them through."""
    # Read before the rest of the page, so that whatever happens later is told by the stream.
    last_event = EventRepository(session).end().id
    found = result_views.job_page(session, after or None, PER_PAGE, only)
    kept = {name: value for name, value in request.query_params.items() if name != "after" and value}
    return page(
        request,
        "jobs.html.jinja",
        last_event=last_event,
        jobs=found.items,
        following="" if found.next is None else "/?" + urlencode({**kept, "after": found.next}),
        asked=kept,
        later=bool(after),
        states=[state.value for state in JobState],
    )


@router.get("/registry", dependencies=[*allow(KeyScope.READ), SLOT])
def registry(request: Request, session: ReadSession) -> Response:
    """The registry: the winner of each shape of each kernel of the tenant, as it was verified last."""
    return page(request, "registry.html.jinja", found=registry_list(session, (), None, ()))
