"""A searcher that is created when it is first needed."""

from collections.abc import Callable, Sequence

from warpsmith.domain.state import SliceEnd
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.ports import CompileForecast, Searcher


class LazySearcher(Searcher):
    """Creates the searcher for the first request or forecast and then tells it all results so far.

    Of the slices that share a search only one proposes; the others need no model.
    """

    def __init__(self, make: Callable[[], Searcher]) -> None:
        self._make = make
        self._made: Searcher | None = None
        self._told: list[tuple[Configuration, float | None]] = []

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`."""
        return self._now().ask(count)

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`."""
        if self._made is None:
            self._told.append((configuration, value))
        else:
            self._made.tell(configuration, value)

    @property
    def forecast(self) -> CompileForecast | None:
        """See `tuning.ports.Searcher.forecast`."""
        return self._now().forecast

    @property
    def cut_off(self) -> SliceEnd | None:
        """See `tuning.ports.Searcher.cut_off`."""
        return None if self._made is None else self._made.cut_off

    def _now(self) -> Searcher:
        if self._made is None:
            self._made = self._make()
            for configuration, value in self._told:
                self._made.tell(configuration, value)
            self._told.clear()
        return self._made
