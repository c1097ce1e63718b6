"""The client that awaits each reply."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from warpsmith.extensions.clients.client.call import Answer, AsyncSender
from warpsmith.extensions.clients.client.calls import ClientMethods, job_path, stream_path
from warpsmith.extensions.clients.client.event_stream import Told, follow
from warpsmith.extensions.clients.client.patience import POLL_S, LongPolls, Seen, StatusWait
from warpsmith.extensions.clients.client.request import Request
from warpsmith.extensions.clients.client.threads import Threads
from warpsmith.extensions.clients.client.transport import CONNECTIONS, Transport
from warpsmith.extensions.clients.python.kernel_given import GivenJob
from warpsmith.extensions.clients.python.result import Result
from warpsmith.http_models import JobStatus


class AsyncClient(ClientMethods, AsyncSender):
    """`Client` for programs with an event loop: every method is a coroutine, or an asynchronous iterator.

    Requests are sent by threads. A call that is cancelled ends at once, but its request may still arrive.

    Args:
        url: address of the service (`http://127.0.0.1:8765`).
        key: API key; the embedded service needs none.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        self._transport = Transport(url, key)
        self._threads = Threads(CONNECTIONS)
        # Other calls need connections, too.
        self._long_polls = LongPolls(CONNECTIONS // 2)
        self.url = url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; their threads end by themselves."""
        self._transport.close()

    async def send(self, request: Request[Answer]) -> Answer:
        """The answer to a request; the other methods make requests for it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._transport.answer, request)

    async def ready(self) -> str:
        """Empty if the service is ready; else the reason why it is not."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._transport.ready)

    async def wait(
        self,
        job_id: str,
        on_status: Callable[[JobStatus], None] | None = None,
        *,
        timeout_s: float | None = None,
        every_s: float = POLL_S,
    ) -> JobStatus:
        """Wait until the job has ended; its last status. The service answers when the status changes; where
        many jobs are waited for, it is polled for some of them.

        Args:
            on_status: is called with every status.
            timeout_s: longest wait in seconds; None: as long as the job takes.
            every_s: shortest time between two statuses, in seconds.

        Raises:
            TimedOut: the job has not ended in time. It goes on.
        """
        patience = StatusWait(job_path(job_id), timeout_s, on_status, every_s)
        while (status := patience.ended(await self._poll(patience))) is None:
            await asyncio.sleep(patience.pause_s)
        return status

    async def _poll(self, patience: StatusWait) -> Seen:
        longest_s = self._long_polls.longest_s()
        try:
            return await self.send(patience.poll(longest_s))
        finally:
            self._long_polls.give_back(longest_s)

    async def stream(self, job_id: str | None = None, after: int | None = None) -> AsyncIterator[Told]:
        """Streams a job's changes of status and its events as they come, until the job has ended.

        Without `job_id`: to all jobs of the tenant, without an end.

        Lost connections are made anew; nothing is missed or told twice. Every stream holds a connection.

        Args:
            after: id of the last event that is known. None: a job is told from its first event on, a tenant
                from now on.

        Raises:
            Unavailable: the service has not answered for a minute.
        """
        told = follow(stream_path(job_id), self._transport.lines, after)
        loop = asyncio.get_running_loop()
        while (item := await loop.run_in_executor(self._threads, next, told, None)) is not None:
            yield item

    async def result_of(self, job_id: str) -> Result:
        """The result of a job that has ended, with its trials.

        Raises:
            InvalidInput: the job has not ended.
        """
        return Result(await self.result(job_id), [trial async for trial in self.trials(job_id)])

    async def tune(
        self,
        job: GivenJob,
        key: str | None = None,
        priority: int = 0,
        *,
        on_status: Callable[[JobStatus], None] | None = None,
        timeout_s: float | None = None,
    ) -> Result:
        """Submit a job, wait for its end, and fetch its result, also if it failed or gained nothing.

        Args:
            job: a `Job`, a mapping in the job form, or the path of a job file.
            key: idempotency key; the same key goes on with the same job.
            priority: from -10 to 10; among the jobs of the tenant, the higher goes first.
            on_status: is called with every status.
            timeout_s: longest wait in seconds; None: as long as the job takes.

        Raises:
            TimedOut: the job has not ended in time. It goes on.
        """
        job_id = (await self.submit(job, key, priority)).id
        await self.wait(job_id, on_status, timeout_s=timeout_s)
        return await self.result_of(job_id)
