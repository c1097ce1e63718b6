"""What a sanitizer of tests has besides its findings."""

from contextlib import AbstractContextManager, nullcontext


class NothingWaits:
    """A sanitizer that starts nothing in advance."""

    def expect(self, count: int) -> None:
        """See `SanitizerPort.expect`."""

    def halted(self) -> AbstractContextManager[None]:
        """See `SanitizerPort.halted`."""
        return nullcontext()

    def drop(self) -> None:
        """See `SanitizerPort.drop`."""
