"""A console that no text of a service or a job file can steer."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from warpsmith.system.printable import printable


class SafeConsole(Console):
    """A console whose own control codes are the only ones."""

    def render(self, *args: Any, **kwargs: Any) -> Iterable[Segment]:
        """The segments of what is shown, with control characters escaped."""
        for segment in super().render(*args, **kwargs):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
