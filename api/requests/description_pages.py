"""The pages of the API's description. All their assets are served here, so they work offline."""

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.requests import Request

ASSETS = "/docs/assets"
SCRIPT, STYLE, REDOC, ICON = (
    f"{ASSETS}/{name}"
    for name in ("swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js", "favicon.png")
)
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; frame-ancestors 'none'"
)
"""Their libraries write scripts and styles into the page; they may ask nobody but this service."""
PUBLIC = frozenset({"/docs", "/redoc", "/openapi.json", SCRIPT, STYLE, REDOC, ICON})
"""Paths that need no key."""


def install(app: FastAPI) -> None:
    """Serve `/docs` and `/redoc` for an application created without them."""
    folder = Path(fastapi_offline.__file__).parent / "static"
    app.mount(ASSETS, StaticFiles(directory=folder), name="docs-assets")

    async def swagger(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        shown = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title=app.title,
            swagger_js_url=root + SCRIPT,
            swagger_css_url=root + STYLE,
            swagger_favicon_url=root + ICON,
        )
        shown.headers["Content-Security-Policy"] = POLICY
        return shown

    async def redoc(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        shown = get_redoc_html(
            openapi_url=f"{root}/openapi.json",
            title=app.title,
            redoc_js_url=root + REDOC,
            redoc_favicon_url=root + ICON,
            with_google_fonts=False,
        )
        shown.headers["Content-Security-Policy"] = POLICY
        return shown

    app.add_route("/docs", swagger, include_in_schema=False)
    app.add_route("/redoc", redoc, include_in_schema=False)
