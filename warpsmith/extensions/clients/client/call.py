"""Methods that are written once, as requests, and that each kind of client sends in its own way."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from warpsmith.extensions.clients.client.request import Page, Request

P = ParamSpec("P")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class Sender(ABC):
    """A client that waits for each reply."""

    @abstractmethod
    def send(self, request: Request[Answer]) -> Answer:
        """The answer to a request."""

    def every(self, request: Request[Page[Item]]) -> Iterator[Item]:
        """All items from the requested page on."""
        following: Request[Page[Item]] | None = request
        while following is not None:
            page = self.send(following)
            yield from page.items
            following = None if page.next is None else following.after(page.next)


class AsyncSender(ABC):
    """A client that awaits each reply."""

    @abstractmethod
    async def send(self, request: Request[Answer]) -> Answer:
        """The answer to a request."""

    async def every(self, request: Request[Page[Item]]) -> AsyncIterator[Item]:
        """All items from the requested page on."""
        following: Request[Page[Item]] | None = request
        while following is not None:
            page = await self.send(following)
            for item in page.items:
                yield item
            following = None if page.next is None else following.after(page.next)


class Call(Generic[P, Answer]):
    """A method that sends one request: a coroutine of an `AsyncSender`."""

    def __init__(self, request: Callable[Concatenate[Any, P], Request[Answer]]) -> None:
        self._request = request
        self.__doc__ = request.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Request[Answer]]: ...

    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[P, Answer]: ...

    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, Coroutine[Any, Any, Answer]]: ...

    def __get__(self, client: Sender | AsyncSender | None, owner: type) -> Any:
        """The method of a client, or, of a class, what makes its request."""
        if client is None:
            return self._request
        bound = client

        @wraps(self._request)
        def call(*args: P.args, **kwargs: P.kwargs) -> Answer | Coroutine[Any, Any, Answer]:
            return bound.send(self._request(bound, *args, **kwargs))

        return call


class Pages(Generic[P, Item]):
    """A method that iterates over all pages of a list: asynchronously of an `AsyncSender`.

    Each page is requested when its first item is asked for.
    """

    def __init__(self, request: Callable[Concatenate[Any, P], Request[Page[Item]]]) -> None:
        self._request = request
        self.__doc__ = request.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Request[Page[Item]]]: ...

    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[P, Iterator[Item]]: ...

    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[P, AsyncIterator[Item]]: ...

    def __get__(self, client: Sender | AsyncSender | None, owner: type) -> Any:
        """The method of a client, or, of a class, what makes its first request."""
        if client is None:
            return self._request
        bound = client

        @wraps(self._request)
        def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[Item] | AsyncIterator[Item]:
            return bound.every(self._request(bound, *args, **kwargs))

        return call
