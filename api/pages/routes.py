"""All pages."""

from fastapi import FastAPI

from api.pages import assets, jobs, sign_in

ROUTERS = (assets.router, sign_in.router, jobs.router)


def install(app: FastAPI) -> None:
    """Serve the pages."""
    for router in ROUTERS:
        app.include_router(router)
