"""The client that waits for each reply."""

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from warpsmith.extensions.clients.client.call import Answer, Sender
from warpsmith.extensions.clients.client.calls import ClientMethods, job_path, stream_path
from warpsmith.extensions.clients.client.event_stream import Told, follow
from warpsmith.extensions.clients.client.patience import POLL_S, StatusWait
from warpsmith.extensions.clients.client.request import Request
from warpsmith.extensions.clients.client.transport import Transport
from warpsmith.extensions.clients.python.kernel_given import GivenJob
from warpsmith.extensions.clients.python.result import Result
from warpsmith.http_models import JobStatus


class Client(ClientMethods, Sender):
    """Client of one service. Raises `Unavailable` if it cannot be reached or fails, and `NotFound` and
    `InvalidInput` as the service reports them.

    Args:
        url: address of the service (`http://127.0.0.1:8765`).
        key: API key; the embedded service needs none.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        self._transport = Transport(url, key)
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def send(self, request: Request[Answer]) -> Answer:
        """The answer to a request; the other methods make requests for it."""
        return self._transport.answer(request)

    def ready(self) -> str:
        """Empty if the service is ready; else the reason why it is not."""
        return self._transport.ready()

    def wait(
        self,
        job_id: str,
        on_status: Callable[[JobStatus], None] | None = None,
        *,
        timeout_s: float | None = None,
        every_s: float = POLL_S,
    ) -> JobStatus:
        """Wait until the job has ended; its last status. The service answers when the status changes.

        Args:
            on_status: is called with every status.
            timeout_s: longest wait in seconds; None: as long as the job takes.
            every_s: shortest time between two statuses, in seconds.

        Raises:
            TimedOut: the job has not ended in time. It goes on.
        """
        patience = StatusWait(job_path(job_id), timeout_s, on_status, every_s)
        while (status := patience.ended(self.send(patience.poll()))) is None:
            time.sleep(patience.pause_s)
        return status

    def stream(self, job_id: str | None = None, after: int | None = None) -> Iterator[Told]:
        """Streams a job's changes of status and its events as they come, until the job has ended.

        Without `job_id`: to all jobs of the tenant, without an end.

        Lost connections are made anew; nothing is missed or told twice.

        Args:
            after: id of the last event that is known. None: a job is told from its first event on, a tenant
                from now on.

        Raises:
            Unavailable: the service has not answered for a minute.
        """
        return follow(stream_path(job_id), self._transport.lines, after)

    def result_of(self, job_id: str) -> Result:
        """The result of a job that has ended, with its trials.

        Raises:
            InvalidInput: the job has not ended.
        """
        return Result(self.result(job_id), list(self.trials(job_id)))

    def tune(
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
        job_id = self.submit(job, key, priority).id
        self.wait(job_id, on_status, timeout_s=timeout_s)
        return self.result_of(job_id)
