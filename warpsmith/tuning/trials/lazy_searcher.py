"""A searcher that is made when it is needed."""

from collections.abc import Callable, Sequence

from warpsmith.domain.space import Configuration
from warpsmith.tuning.ports import CompileAwareSearcher, Searcher


class LazySearcher:
    """Implements `tuning.ports.Searcher`: is made, and hears what it was told, when it is first asked.

    Of the slices that share a search one proposes; the others need no model of what was found.
    """

    def __init__(self, make: Callable[[], Searcher]) -> None:
        self._make = make
        self._made: Searcher | None = None
        self._told: list[tuple[Configuration, float | None]] = []

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`."""
        if self._made is None:
            self._made = self._make()
            for configuration, value in self._told:
                self._made.tell(configuration, value)
            self._told.clear()
        return self._made.ask(count)

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`."""
        if self._made is None:
            self._told.append((configuration, value))
        else:
            self._made.tell(configuration, value)

    def likely(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.CompileAwareSearcher.likely`; nothing before it is made."""
        made: object = self._made
        return made.likely(count) if isinstance(made, CompileAwareSearcher) else ()

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        """See `tuning.ports.CompileAwareSearcher.learn`."""
        made: object = self._made
        if isinstance(made, CompileAwareSearcher):
            made.learn(configuration, occupancy, spills)

    def exclude(self, configuration: Configuration) -> None:
        """See `tuning.ports.CompileAwareSearcher.exclude`."""
        made: object = self._made
        if isinstance(made, CompileAwareSearcher):
            made.exclude(configuration)
