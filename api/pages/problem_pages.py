"""Middleware of all pages: shows problems of the API as pages, and compresses."""

import json
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.pages.rendering import page
from api.requests.page_paths import NEXT_CHARACTERS, SIGN_IN, is_compressed, is_page
from api.requests.problems import MEDIA_TYPE
from warpsmith.http_models import Problem


class ProblemPages:
    """Middleware that turns a problem in answer to a page's request into a page with the same words.

    Who lacks a key is sent to sign in, and comes back from there. A link of another site is followed once
    more before, from here.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and look at what comes back."""
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        begun: Message = {}
        body = b""

        async def see(message: Message) -> None:
            nonlocal begun, body
            if message["type"] == "http.response.start":
                if Headers(raw=message["headers"]).get("content-type", "").startswith(MEDIA_TYPE):
                    begun = message
                    return
            elif begun:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    await _shown(scope, begun, body)(scope, receive, send)
                return
            await send(message)

        await self._app(scope, receive, see)


class CompressedPages:
    """Middleware that compresses pages and points, and nothing else: no stream is held back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=1000, compresslevel=5)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        compressed = scope["type"] == "http" and is_compressed(scope["path"])
        await (self._compressed if compressed else self._app)(scope, receive, send)


def _shown(scope: Scope, begun: Message, body: bytes) -> Response:
    request, status = Request(scope), int(begun["status"])
    if status == 401:
        return _asked_to_sign_in(request)
    said = Problem.model_validate(json.loads(body))
    kept = {
        name: value
        for name, value in Headers(raw=begun["headers"]).items()
        if name in ("retry-after", "allow")
    }
    return page(request, "problem.html.jinja", status_code=status, headers=kept, said=said)


def _asked_to_sign_in(request: Request) -> Response:
    asked = quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")
    if request.method != "GET" or len(asked) > NEXT_CHARACTERS:
        return RedirectResponse(SIGN_IN, 303)
    # A browser sends no strict cookie if another site holds the link, but does if a page of ours leads there.
    if request.headers.get("sec-fetch-site") == "cross-site":
        return page(request, "again.html.jinja", asked=asked)
    return RedirectResponse(SIGN_IN + ("" if asked == "/" else f"?next={quote(asked, safe='')}"), 303)
