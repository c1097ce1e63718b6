"""Requests of the API and the reading of their replies, shared by all clients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from warpsmith.errors import InvalidInput, NotFound, Unavailable
from warpsmith.http_models import Problem

Answer_co = TypeVar("Answer_co", covariant=True)
Item_co = TypeVar("Item_co", covariant=True)


@dataclass(frozen=True)
class Reply:
    """HTTP reply of the service."""

    status: int
    body: bytes
    etag: str = ""
    """Its `ETag`; empty if it has none."""

    @property
    def problem(self) -> Problem:
        """The problem that it reports, whoever wrote it."""
        try:
            return Problem.model_validate_json(self.body)
        except ValidationError:
            words = self.body.decode(errors="replace")[:500]
            return Problem(title=f"HTTP {self.status}", status=self.status, detail=words)

    @property
    def not_ready(self) -> str:
        """Reason in a reply to `/readyz` for which the service is not ready; empty if it is ready."""
        return "" if self.status == 200 else self.problem.detail


class Page(Protocol[Item_co]):
    """A part of a list."""

    @property
    def items(self) -> tuple[Item_co, ...]:
        """The items of the part, in order."""

    @property
    def next(self) -> str | int | None:
        """Value of `after` that requests the next part; None after the last."""


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

    def answer(self, reply: Reply, url: str) -> Answer_co:
        """The answer in a reply.

        Args:
            url: address of the service, for messages.

        Raises:
            NotFound: the service knows no such thing.
            InvalidInput: the service refuses the request, or the API key.
            Unavailable: the service has failed, asks for patience, or is none of ours.
        """
        if reply.status >= 400:
            raise _refusal(reply)
        words = f"{url} does not answer as Warpsmith does: HTTP {reply.status}"
        if reply.status >= 300:
            raise Unavailable(words)
        try:
            return self.read(reply.body)
        except ValueError as exc:
            raise Unavailable(words) from exc


def _refusal(reply: Reply) -> InvalidInput | NotFound | Unavailable:
    problem = reply.problem
    words = "; ".join(f"{e.field}: {e.message}" for e in problem.errors) or problem.detail
    if reply.status == 404:
        return NotFound(words or problem.title)
    if reply.status == 429:
        return Unavailable(f"{words or problem.title}; try again later")
    if reply.status in (401, 403):
        return InvalidInput("API key", words or problem.title)
    if reply.status >= 500:
        return Unavailable(f"{problem.title}: {words}")
    if problem.errors and problem.errors[0].field:
        rest = "".join(f"\n{e.field}: {e.message}" for e in problem.errors[1:])
        return InvalidInput(problem.errors[0].field, problem.errors[0].message + rest)
    return InvalidInput("", words or problem.title)
