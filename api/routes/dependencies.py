"""Dependencies of routes: settings, a session that commits before the reply, the notifier.

Dependencies without database access are coroutines: FastAPI runs anything else in a thread, which costs more
than they do.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, cast

from fastapi import Depends, Path, Request
from sqlalchemy.orm import Session

from api.live.broadcaster import Broadcaster
from api.live.shared_polls import Polls
from api.requests.auth import CurrentCaller
from db.engine import Database
from db.queue.broker import Notifier
from warpsmith.http_models import NO_NUL
from warpsmith.settings import Settings


async def get_settings(request: Request) -> Settings:
    """The settings of this service."""
    return cast(Settings, request.app.state.settings)


async def get_fleet_database(request: Request) -> Database:
    """The database of this service, with the rows of every tenant."""
    return cast(Database, request.app.state.database)


async def get_database(request: Request, caller: CurrentCaller) -> Database:
    """The database as the caller's tenant sees it."""
    fleet = cast(Database, request.app.state.database)
    return fleet.of(caller.tenant)


async def get_notifier(request: Request) -> Notifier:
    """The sender of messages to queues."""
    return cast(Notifier, request.app.state.notifier)


async def get_broadcaster(request: Request) -> Broadcaster:
    """The publisher of events and statuses of jobs to waiting clients."""
    return cast(Broadcaster, request.app.state.broadcaster)


async def get_polls(request: Request) -> Polls:
    """The pool that batches concurrent polls."""
    return cast(Polls, request.app.state.polls)


def read_session(database: Annotated[Database, Depends(get_database)]) -> Iterator[Session]:
    """A read-only transaction."""
    with database.read() as session:
        yield session


def read_fleet(database: Annotated[Database, Depends(get_fleet_database)]) -> Iterator[Session]:
    """A read-only transaction over all tenants."""
    with database.read() as session:
        yield session


async def one_slot(request: Request) -> AsyncIterator[None]:
    """Wait for a free slot among the concurrent requests before anything else is taken.

    A request holds its connection while it waits for a thread to validate its answer. Without slots, other
    requests could meanwhile occupy all threads, waiting for a connection.
    """
    async with request.app.state.slots:
        yield


SLOT = Depends(one_slot, scope="function")
CurrentSettings = Annotated[Settings, Depends(get_settings)]
CurrentDatabase = Annotated[Database, Depends(get_database)]
"""The default database of routes, which hides the rows of other tenants."""
FleetDatabase = Annotated[Database, Depends(get_fleet_database)]
CurrentPolls = Annotated[Polls, Depends(get_polls)]
CurrentBroadcaster = Annotated[Broadcaster, Depends(get_broadcaster)]
CurrentNotifier = Annotated[Notifier, Depends(get_notifier)]
# The scope matters: code after `yield` must run before the reply is sent.
ReadSession = Annotated[Session, Depends(read_session, scope="function")]
FleetSession = Annotated[Session, Depends(read_fleet, scope="function")]
JobId = Annotated[
    str, Path(max_length=64, pattern=NO_NUL, description="Id of a job, as the submission gave it.")
]
