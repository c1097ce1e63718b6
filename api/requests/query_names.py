"""Query strings: unknown names are refused, so that a misspelt filter is not ignored."""

import difflib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import BeforeValidator
from starlette.routing import compile_path

from db.repositories.jobs import JobFilter
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
from warpsmith.http_models import NO_NUL

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
LABEL = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}=[^\x00-\x1f=]{0,120}$"


def described(request: Request) -> dict[str, Any]:
    """The operations of the requested path, by method, from the API's own description."""
    paths: dict[str, Any] = request.app.openapi()["paths"]
    for path, operations in paths.items():
        if compile_path(path)[0].match(request.scope["path"]):
            return dict(operations)
    return {}


async def known_names(request: Request) -> None:
    """Refuse names that this path does not define.

    Raises:
        InvalidInput: names the first such name and the defined ones.
    """
    if not request.query_params:
        return
    known = sorted(set(_names(request.scope["route"].dependant)))
    for name in request.query_params:
        if name not in known:
            raise InvalidInput(f"query.{name[:64]}", _unknown(name, known))


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (p.alias for p in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _names(inner)


def _unknown(name: str, known: Sequence[str]) -> str:
    if not known:
        return "this path takes no query"
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"no such name{meant} (this path takes {', '.join(sorted(known))})"


KNOWN_NAMES = Depends(known_names)


def _moment(value: object) -> object:
    """Check a time strictly: pydantic also accepts numbers, and times without a zone."""
    if isinstance(value, str) and not _RFC_3339.fullmatch(value):
        raise ValueError("should be a time with its time zone, 2026-11-22T08:00:00Z or ...+02:00")
    return value


Moment = Annotated[datetime, BeforeValidator(_moment)]


async def job_filter(
    state: Annotated[
        tuple[JobState, ...],
        Query(max_length=len(JobState), description="Jobs in this state; several may be asked for."),
    ] = (),
    label: Annotated[
        tuple[Annotated[str, Query(pattern=LABEL)], ...],
        Query(max_length=16, description="`key=value`; with several, jobs that have all of them."),
    ] = (),
    name: Annotated[
        str, Query(max_length=120, pattern=NO_NUL, description="Part of the name, in any case.")
    ] = "",
    device: Annotated[
        str, Query(max_length=120, pattern=NO_NUL, description="Device class, as `/v1/workers` names it.")
    ] = "",
    created_from: Annotated[Moment | None, Query(description="Submitted at this time or later.")] = None,
    created_before: Annotated[Moment | None, Query(description="Submitted before this time.")] = None,
) -> JobFilter:
    """The filter of a list of jobs.

    Raises:
        InvalidInput: a label has two different values.
    """
    labels: dict[str, str] = {}
    for text in label:
        key, _, value = text.partition("=")
        if labels.setdefault(key, value) != value:
            raise InvalidInput("query.label", f"{key} cannot have two values at once")
    return JobFilter(state, labels, name, device, created_from, created_before)


JobsAskedFor = Annotated[JobFilter, Depends(job_filter)]
