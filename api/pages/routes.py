"""All pages."""

from fastapi import FastAPI

from api.pages import agents, assets, candidates, compare, fleet, job, jobs, new_job, sign_in

PAGES = (assets, sign_in, jobs, job, candidates, agents, compare, fleet, new_job)


def install(app: FastAPI) -> None:
    """Serve the pages."""
    for module in PAGES:
        app.include_router(module.router)
