"""Base of all searchers over a feasible set: nothing is proposed twice, and warm starts come first."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.templates.space import Configuration
from warpsmith.search.spaces.feasible_set import FeasibleSet


class SetSearcher:
    """Base of the searchers; a subclass chooses the next open configuration.

    Args:
        feasible: the set to search.
        seed: seed of all randomness, which makes a search reproducible.
    """

    def __init__(self, feasible: FeasibleSet, seed: int = 0) -> None:
        self.feasible = feasible
        self.rng = np.random.default_rng(seed)
        self.asked = np.zeros(len(feasible), bool)
        self.values: dict[int, float | None] = {}
        """Objective by row; None: the configuration was rejected."""
        self.least_gain = 0.0
        """Relative gain below which the search ends before its set does; 0: never."""
        self._unfinished: list[int] = []
        self._starts: list[int] = []

    @property
    def forecast(self) -> "ModelSearcher | None":
        """See `tuning.ports.Searcher.forecast`; only searchers with a model have one."""
        return None

    @property
    def cut_off(self) -> None:
        """See `tuning.ports.Searcher.cut_off`: nothing but its own end stops it."""
        return None

    def start_with(self, configurations: Iterable[Configuration]) -> None:
        """Propose these configurations first, if they are in the set."""
        self._starts += self._rows(configurations)

    def finish_first(self, configurations: Iterable[Configuration]) -> None:
        """Propose these before all others: they were proposed before, and their results never came."""
        self._unfinished += self._rows(configurations)

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`; nothing once the search has settled."""
        out: list[Configuration] = []
        if self.least_gain and self.settled(self.least_gain):
            return out
        while len(out) < count and not self.asked.all():
            index = self._first_open(self._unfinished)
            if index is None:
                index = self._next_start()
            if index is None:
                index = self.choose()
            self.asked[index] = True
            self.on_ask(index)
            out.append(self.feasible.configuration(index))
        return out

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`. Configurations outside the set, and repeated results, are
        ignored."""
        index = self.feasible.index(configuration)
        if index is None or index in self.values:
            return
        if not self.asked[index]:
            self.asked[index] = True
            self.on_ask(index)
        self.values[index] = value
        self.on_tell(index, value)

    def choose(self) -> int:
        """The next row; called only while some row is open."""
        raise NotImplementedError

    def on_ask(self, index: int) -> None:
        """Hook: a row was proposed."""

    def on_tell(self, index: int, value: float | None) -> None:
        """Hook: the result of a row is known."""

    @property
    def open_rows(self) -> NDArray[np.intp]:
        """Rows to choose from."""
        return np.flatnonzero(~self.asked)

    def settled(self, least: float) -> bool:
        """True if no relative gain of `least` is expected any more; only searchers with a model know."""
        return False

    def best(self) -> int | None:
        """The row with the lowest value."""
        measured = [(v, i) for i, v in self.values.items() if v is not None]
        return min(measured)[1] if measured else None

    def _next_start(self) -> int | None:
        return self._first_open(self._starts)

    def _first_open(self, rows: list[int]) -> int | None:
        """The first open row of the list; it and the rows before it are removed from the list."""
        while rows:
            index = rows.pop(0)
            if not self.asked[index]:
                return index
        return None

    def _rows(self, configurations: Iterable[Configuration]) -> list[int]:
        found = (self.feasible.index(c) for c in configurations)
        return [index for index in found if index is not None]


class ModelSearcher(SetSearcher):
    """A searcher with a model, which implements `tuning.ports.CompileForecast` as well."""

    @property
    def forecast(self) -> "ModelSearcher":
        """See `tuning.ports.Searcher.forecast`."""
        return self

    def likely(self, count: int, after: Sequence[Configuration] = ()) -> Sequence[Configuration]:
        """See `tuning.ports.CompileForecast.likely`."""
        raise NotImplementedError

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        """See `tuning.ports.CompileForecast.learn`."""
        raise NotImplementedError

    def exclude(self, configuration: Configuration) -> None:
        """See `tuning.ports.CompileForecast.exclude`."""
        raise NotImplementedError
