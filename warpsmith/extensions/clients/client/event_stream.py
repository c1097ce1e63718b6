"""A stream of events that goes on over lost connections."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from warpsmith.domain.state import JobState
from warpsmith.errors import ServiceUnreachable, Unavailable
from warpsmith.extensions.clients.client.request import Request
from warpsmith.http_models import EventView, JobStatus

Told = JobStatus | EventView
"""Item of a job's stream: a status that has changed, or an event."""
AGAIN_S = 1.0
"""Pause before a lost connection is made anew."""
GIVE_UP_S = 60.0
"""Seconds without a connection after which a stream ends with an error."""

Lines = Callable[[Request[None]], AbstractContextManager[Iterator[str] | None]]
"""Opens a reply and gives its lines as they arrive; None if there is nothing more to tell."""


def follow(path: str, lines: Lines, after: int | None = None) -> Iterator[Told]:
    """Items of a stream in order, without a gap or a repetition, until the service ends it.

    Args:
        after: id of the last event that is known; None: from the start of the stream.

    Raises:
        Unavailable: the service has not answered for `GIVE_UP_S`, or refuses.
    """
    heard_s, ended = time.monotonic(), False
    while not ended:
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        try:
            with lines(Request(lambda _: None, "GET", path, headers=headers)) as found:
                if found is None:
                    return
                heard_s = time.monotonic()
                for told in _messages(found):
                    heard_s = time.monotonic()
                    if isinstance(told, EventView):
                        after = told.id
                    # Others of the same moment may follow.
                    ended = ended or _ends(told, path)
                    yield told
        except ServiceUnreachable:
            if time.monotonic() - heard_s > GIVE_UP_S:
                raise
        if not ended:
            time.sleep(AGAIN_S)


def _ends(told: Told, path: str) -> bool:
    of_job = path != "/v1/stream"
    if not of_job or not isinstance(told, EventView) or told.kind != "state":
        return False
    return JobState(str(told.data["state"])).is_terminal


def _messages(lines: Iterator[str]) -> Iterator[Told]:
    name, data = "", ""
    for line in lines:
        field, _, value = line.partition(":")
        if not line:
            if data:
                yield _told(name, data)
            name, data = "", ""
        elif field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data += value.removeprefix(" ")


def _told(name: str, data: str) -> Told:
    try:
        return (JobStatus if name == "status" else EventView).model_validate_json(data)
    except ValueError as exc:
        raise Unavailable("the stream is none of Warpsmith's") from exc
