"""Pages made of templates, with the headers that keep foreign code out of them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.pages.assets import WEB, asset_path
from api.requests.auth import CALLER, Caller
from warpsmith import __version__
from warpsmith.report import formats
from warpsmith.report.parts import FOLDER as PARTS

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing runs in a page, or is loaded by it, but our own files."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def page_router() -> APIRouter:
    """A router of pages, which the description of the API leaves out."""
    return APIRouter(include_in_schema=False)


@lru_cache
def environment() -> Environment:
    """The templates. Everything that they show is text, unless it was marked by us as HTML."""
    made = Environment(
        loader=FileSystemLoader([WEB / "templates", PARTS]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals |= {"asset": asset_path, "version": __version__}
    made.filters |= formats.FILTERS
    return made


def page(
    request: Request,
    name: str,
    *,
    status_code: int = 200,
    headers: Mapping[str, str] | None = None,
    **shown: Any,
) -> HTMLResponse:
    """A page.

    Args:
        name: of the template.
        shown: what the template names.
    """
    caller: Caller | None = request.scope.get(CALLER)
    text = (
        environment()
        .get_template(name)
        .render(
            path=request.url.path,
            home=str(request.base_url).rstrip("/"),
            tenant="" if caller is None else caller.tenant,
            scopes=frozenset() if caller is None else caller.scopes,
            with_key=caller is not None and caller.key is not None,
            **shown,
        )
    )
    return HTMLResponse(text, status_code, {**HEADERS, **(headers or {})})
