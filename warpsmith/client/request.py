"""One request of the API, and what its reply means: the same for every client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, Self, TypeVar

import httpx2
from pydantic import ValidationError

from warpsmith.errors import InvalidInput, NotFound, Unavailable
from warpsmith.http_models import Problem

Answer_co = TypeVar("Answer_co", covariant=True)
Item_co = TypeVar("Item_co", covariant=True)

TIMEOUT_S = 30.0


class Page(Protocol[Item_co]):
    """A part of a list."""

    @property
    def items(self) -> tuple[Item_co, ...]:
        """The items of the part, in order."""

    @property
    def next(self) -> str | int | None:
        """What to pass as `after` for the next part; None after the last."""


@dataclass(frozen=True)
class Request(Generic[Answer_co]):
    """A request, and how its answer is read."""

    read: Callable[[bytes], Answer_co]
    """Reads the body of a reply; raises ValueError if the body is something else."""
    method: str
    path: str
    content: str | None = None
    """The body, as JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Sequence[tuple[str, str]] = ()

    def after(self, last: str | int) -> Self:
        """The request of the next page.

        Args:
            last: `next` of the page before.
        """
        others = [(name, value) for name, value in self.params if name != "after"]
        return replace(self, params=[*others, ("after", str(last))])

    def sent_by(self, http: httpx2.Client | httpx2.AsyncClient) -> httpx2.Request:
        """The request as a transport sends it."""
        kind = {} if self.content is None else {"Content-Type": "application/json"}
        return http.build_request(
            self.method,
            self.path,
            content=self.content,
            headers={**kind, **self.headers},
            params=list(self.params),
        )

    def answer(self, reply: httpx2.Response, url: str) -> Answer_co:
        """The answer in a reply.

        Args:
            url: address of the service, for messages.

        Raises:
            NotFound: the service knows no such thing.
            InvalidInput: the service refuses the request, or the API key.
            Unavailable: the service has failed, asks for patience, or is none of ours.
        """
        if reply.status_code >= 400:
            raise _refusal(reply)
        try:
            return self.read(reply.content)
        except ValidationError as exc:
            words = f"{url} does not answer as Warpsmith does: HTTP {reply.status_code}"
            raise Unavailable(words) from exc


def key_headers(key: str | None) -> dict[str, str]:
    """The headers that show an API key."""
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def unanswered(url: str, error: httpx2.HTTPError) -> Unavailable:
    """What a client raises if no reply came."""
    return Unavailable(f"{url} does not answer: {error}")


def readiness(url: str, reply: httpx2.Response | httpx2.HTTPError) -> str:
    """Why a service is not ready, by its reply; empty if it is."""
    if isinstance(reply, httpx2.HTTPError):
        return f"{url} does not answer ({type(reply).__name__})"
    return "" if reply.status_code == 200 else problem_in(reply).detail


def problem_in(reply: httpx2.Response) -> Problem:
    """The problem that a reply reports, whoever wrote it."""
    try:
        return Problem.model_validate_json(reply.content)
    except ValidationError:
        return Problem(title=f"HTTP {reply.status_code}", status=reply.status_code, detail=reply.text[:500])


def _refusal(reply: httpx2.Response) -> InvalidInput | NotFound | Unavailable:
    problem = problem_in(reply)
    words = "; ".join(f"{e.field}: {e.message}" for e in problem.errors) or problem.detail
    if reply.status_code == 404:
        return NotFound(words or problem.title)
    if reply.status_code == 429:
        return Unavailable(f"{words or problem.title}; try again later")
    if reply.status_code in (401, 403):
        return InvalidInput("API key", words or problem.title)
    if reply.status_code >= 500:
        return Unavailable(f"{problem.title}: {words}")
    if len(problem.errors) == 1 and problem.errors[0].field:
        return InvalidInput(problem.errors[0].field, problem.errors[0].message)
    return InvalidInput("", words or problem.title)
