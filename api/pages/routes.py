"""All pages."""

from fastapi import FastAPI

from api.pages import agents, assets, candidates, job, jobs, sign_in

ROUTERS = (assets.router, sign_in.router, jobs.router, job.router, candidates.router, agents.router)


def install(app: FastAPI) -> None:
    """Serve the pages."""
    for router in ROUTERS:
        app.include_router(router)
