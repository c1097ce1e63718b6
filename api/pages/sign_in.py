"""Signing in to the pages: the key goes into a cookie that no script can read."""

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from api.pages.rendering import page, page_router
from api.requests.auth import COOKIE, GATE, Gate, sent_from_elsewhere
from api.requests.page_paths import NEXT_CHARACTERS, SIGN_IN, SIGN_OUT, is_page
from api.requests.problems import Forbidden, TooLarge
from warpsmith.errors import InvalidInput
from warpsmith.http_models import NO_NUL

router = page_router()

FORM_BYTES = 4096
"""Limit on the form; a key has about 50 characters."""
FORM_FIELDS = 100
Next = Annotated[str, Query(max_length=NEXT_CHARACTERS, pattern=NO_NUL)]


@router.get(SIGN_IN)
async def form(request: Request, next: Next = "/") -> Response:
    """The form that asks for a key."""
    return page(request, "login.html.jinja", next=local(next), problem="")


@router.post(SIGN_IN)
async def sign_in(request: Request, next: Next = "/") -> Response:
    """Keep the key in a cookie and go on to the page that was asked for."""
    if sent_from_elsewhere(request.scope):
        raise Forbidden("sign in on the page of this service")
    fields = await read_form(request, FORM_BYTES)
    key = fields.get("key", "").strip()
    refusal = await gate_of(request).refusal(request.scope, key)
    if refusal is not None:
        words = "The key is unknown, revoked or expired."
        if refusal.status_code != 401:
            words = "Not now: too many wrong keys came from this address, or the database does not answer."
        shown = page(
            request, "login.html.jinja", next=local(next), problem=words, status_code=refusal.status_code
        )
        if "Retry-After" in refusal.headers:
            shown.headers["Retry-After"] = refusal.headers["Retry-After"]
        return shown
    reply = RedirectResponse(local(next), 303)
    reply.set_cookie(
        COOKIE, key, httponly=True, samesite="strict", secure=request.url.scheme == "https", path="/"
    )
    return reply


@router.post(SIGN_OUT)
async def sign_out() -> Response:
    """Forget the key."""
    reply = RedirectResponse(SIGN_IN, 303)
    reply.delete_cookie(COOKIE, httponly=True, samesite="strict", path="/")
    return reply


def local(path: str) -> str:
    """The path if it is a page of this service to come back to, else that of the jobs: nobody is sent
    elsewhere, or signs in to be asked to sign in."""
    if not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable():
        return "/"
    plain = path.partition("?")[0]
    return path if is_page(plain) and plain not in (SIGN_IN, SIGN_OUT) else "/"


async def read_form(request: Request, most_bytes: int) -> dict[str, str]:
    """The fields of a form that was sent; of several of one name the last.

    Raises:
        TooLarge: it is longer than `most_bytes`.
        InvalidInput: it has more than `FORM_FIELDS` fields.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            raise TooLarge(f"the form may have {most_bytes} bytes at most")
    try:
        found = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=FORM_FIELDS)
    except ValueError as exc:
        raise InvalidInput("form", f"send {FORM_FIELDS} fields at most") from exc
    return {name: values[-1] for name, values in found.items()}


def gate_of(request: Request) -> Gate:
    """The checker of keys in front of this application."""
    gate: Gate = request.scope[GATE]
    return gate
