"""Files of the pages: style, scripts, and the libraries that are kept in this repository."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException

import api
from api.requests.page_paths import STATIC
from warpsmith.report.parts import FOLDER as PARTS

WEB = Path(api.__file__).parents[1] / "web"
"""Folder of templates and files, beside that of the API in a checkout and in the wheel."""
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
YEAR_S = 31_536_000

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Asset:
    """A file, ready to be sent."""

    body: bytes
    packed: bytes
    """`body`, compressed."""
    kind: str
    digest: str


@lru_cache
def assets() -> dict[str, Asset]:
    """All files by name; those that the report has too are below `parts/`."""
    found = {}
    for folder, prefix in ((WEB / "static", ""), (PARTS, "parts/")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in TYPES:
                body = path.read_bytes()
                name = prefix + path.relative_to(folder).as_posix()
                digest = hashlib.sha256(body).hexdigest()[:16]
                found[name] = Asset(body, gzip.compress(body, 9, mtime=0), TYPES[path.suffix], digest)
    return found


def asset_path(name: str) -> str:
    """The path under which a page names a file: another whenever the file changes."""
    return f"{STATIC}{name}?v={assets()[name].digest}"


@router.get(STATIC + "{name:path}")
async def static(name: str, request: Request, v: Annotated[str, Query(max_length=64)] = "") -> Response:
    """A file, which the browser may keep: once it has changed, pages name it with another digest `v`."""
    found = assets().get(name)
    if found is None:
        raise HTTPException(404, f"there is no file {name!r}")
    headers = {"ETag": f'"{found.digest}"', "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    current = v == found.digest
    headers["Cache-Control"] = f"public, max-age={YEAR_S}, immutable" if current else "no-cache"
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=found.kind)
    return Response(found.body, headers=headers, media_type=found.kind)
