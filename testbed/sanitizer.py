"""What a sanitizer of tests has besides its findings."""


class NothingWaits:
    """A sanitizer that starts nothing in advance."""

    def expect(self, count: int) -> None:
        """See `SanitizerPort.expect`."""

    def settle(self) -> None:
        """See `SanitizerPort.settle`."""

    def drop(self) -> None:
        """See `SanitizerPort.drop`."""
