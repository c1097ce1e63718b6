"""The application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from api.embedded_worker import EmbeddedWorker
from api.live.broadcaster import LOCAL_TICK_S, TICK_S, Broadcaster
from api.live.shared_polls import Polls, Shared
from api.pages import routes
from api.pages.problem_pages import CompressedPages, ProblemPages
from api.requests import description_pages, problems
from api.requests.auth import Gate, allow
from api.requests.limits import BodyLimit
from api.requests.openapi import DescribedApi, operation_id
from api.requests.query_names import KNOWN_NAMES
from api.routes import (
    agent_requests,
    event_stream,
    fleet,
    health,
    job_charts,
    jobs,
    lessons,
    webhooks,
)
from api.routes.dependencies import SLOT
from db.api_keys import KeyScope
from db.engine import open_database
from db.queue.broker import Notifier
from warpsmith import __version__
from warpsmith.http_models import Health
from warpsmith.registry import Kind, load_all
from warpsmith.settings import Settings
from warpsmith.settings import settings as current_settings

SLOTS = 12
"""Limit on concurrent requests, below the number of connections in the database's pool."""
DESCRIPTION = """Tune GPU kernels: post a kernel with its shapes and a budget, poll the status,
get back a faster kernel with evidence."""


def create_app(
    settings: Settings | None = None, *, with_worker: bool | None = None, open_access: bool = False
) -> FastAPI:
    """The application, for a database that is migrated.

    Args:
        settings: settings of the service; None: those of this process.
        with_worker: start an embedded worker; by default in the embedded mode.
        open_access: require no API key; only for a service that listens on loopback.
    """
    chosen = settings or current_settings()
    embedded = chosen.embedded if with_worker is None else with_worker

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database, notifier = open_database(chosen), Notifier(chosen)
        app.state.settings, app.state.database, app.state.notifier = chosen, database, notifier
        app.state.polls = Polls()
        app.state.broadcaster = Broadcaster(database, TICK_S if database.is_server else LOCAL_TICK_S)
        app.state.readiness = Shared[Health]()
        app.state.slots = asyncio.Semaphore(SLOTS)
        worker = EmbeddedWorker() if embedded else None
        if worker is not None:
            worker.start()
        try:
            async with AsyncExitStack() as opened:
                for part in parts:
                    await opened.enter_async_context(part.open())
                yield
        finally:
            app.state.broadcaster.close()
            if worker is not None:
                worker.stop()
            notifier.close()
            database.dispose()

    app = DescribedApi(
        title="Warpsmith",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_tags=[
            {"name": "jobs"},
            {"name": "agents"},
            {"name": "memory"},
            {"name": "webhooks"},
            {"name": "service"},
        ],
        servers=[{"url": "/", "description": "This service."}],
        generate_unique_id_function=operation_id,
        dependencies=[KNOWN_NAMES],
        docs_url=None,
        redoc_url=None,
        # A struct may hold structs, and a form of its own for what is sent back would have the same name.
        separate_input_output_schemas=False,
    )
    app.add_middleware(BodyLimit)
    app.add_middleware(Gate, settings=chosen, open_access=open_access)
    app.add_middleware(ProblemPages)
    app.add_middleware(CompressedPages)
    problems.install(app)
    description_pages.install(app)
    guarded = problems.responses(401, 403, 422, 429, 503)
    app.include_router(jobs.polled, responses=guarded)
    app.include_router(event_stream.router, responses=guarded)
    app.include_router(jobs.router, dependencies=[SLOT], responses=guarded)
    app.include_router(job_charts.router, dependencies=[SLOT], responses=guarded)
    app.include_router(
        agent_requests.router,
        dependencies=[*allow(KeyScope.AGENTS), SLOT],
        responses=guarded | problems.responses(400),
    )
    app.include_router(lessons.router, dependencies=[SLOT], responses=guarded)
    app.include_router(webhooks.making, responses=guarded)
    app.include_router(webhooks.router, dependencies=[SLOT], responses=guarded)
    app.include_router(health.router, responses=problems.responses(422))
    app.include_router(fleet.router, dependencies=[SLOT], responses=guarded)
    routes.install(app)
    parts = [add(app) for add in load_all(Kind.HTTP)]
    return app
