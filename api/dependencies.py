"""What routes are given: settings, a session that commits before the reply, the bell.

What needs no database is a coroutine: FastAPI sends anything else to a thread, which costs more than it does.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from api.auth import CurrentCaller
from api.shared_polls import Polls
from db.broker import Bell
from db.engine import Database
from warpsmith.settings import Settings


async def get_settings(request: Request) -> Settings:
    """The settings of this service."""
    return cast(Settings, request.app.state.settings)


async def get_fleet_database(request: Request) -> Database:
    """The database of this service, with what belongs to every tenant."""
    return cast(Database, request.app.state.database)


async def get_database(request: Request, caller: CurrentCaller) -> Database:
    """The database as the caller's tenant sees it."""
    fleet = cast(Database, request.app.state.database)
    return fleet.of(caller.tenant)


async def get_bell(request: Request) -> Bell:
    """Where queues are rung."""
    return cast(Bell, request.app.state.bell)


async def get_polls(request: Request) -> Polls:
    """Where polls meet."""
    return cast(Polls, request.app.state.polls)


def read_session(database: Annotated[Database, Depends(get_database)]) -> Iterator[Session]:
    """A transaction that writes nothing."""
    with database.read() as session:
        yield session


def read_fleet(database: Annotated[Database, Depends(get_fleet_database)]) -> Iterator[Session]:
    """A transaction that writes nothing and sees every tenant."""
    with database.read() as session:
        yield session


async def one_slot(request: Request) -> AsyncIterator[None]:
    """Wait for a place among the requests that are served now, before anything is taken.

    A request holds its connection while it waits for a thread to check its answer; without this,
    others could hold all threads meanwhile, waiting for a connection.
    """
    async with request.app.state.slots:
        yield


SLOT = Depends(one_slot, scope="function")
CurrentSettings = Annotated[Settings, Depends(get_settings)]
CurrentDatabase = Annotated[Database, Depends(get_database)]
"""Use this one, which shows the caller nothing of other tenants."""
FleetDatabase = Annotated[Database, Depends(get_fleet_database)]
CurrentPolls = Annotated[Polls, Depends(get_polls)]
CurrentBell = Annotated[Bell, Depends(get_bell)]
# The scope matters: code after `yield` must have run before the reply is sent.
ReadSession = Annotated[Session, Depends(read_session, scope="function")]
FleetSession = Annotated[Session, Depends(read_fleet, scope="function")]
