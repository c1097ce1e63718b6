"""The default searcher: a Gaussian process and a categorical density estimate take turns over one set.

The process is strong if time varies smoothly with the parameters, the density estimate if good configurations
are isolated. Both are told every result. Both score all open configurations, so that nothing infeasible is
ever proposed.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.templates.space import Configuration
from warpsmith.search.models.categorical_density import CategoricalDensity
from warpsmith.search.models.covariance import PRIOR, Floats, Prior
from warpsmith.search.models.expected_improvement import expected_improvement
from warpsmith.search.models.gaussian_process import GaussianProcess
from warpsmith.search.searchers.compile_facts import slowness
from warpsmith.search.searchers.set_searcher import ModelSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet
from warpsmith.search.spaces.launch_prior import SizedLaunch

FIRST_POINTS = 6
FIRST_EXPECTED = 4
"""Number of first points if the launch gives a prior."""
TRUSTED_POINTS = 25
"""Number of measured rows below which the model's expected gain is not used."""
LEAST_QUIET_RESULTS = 20
QUIET_TURNS = 3
"""Number of turns without expected gain after which a search has settled.

In addition, as many results as the square root of the set's size must have brought no gain: the larger the
set, the more isolated optima the process does not know of.
"""
FRESH_POINTS = 4
"""Space-filling points after warm starts, so that the search does not depend on these alone."""
MAX_STARTS = 8
"""Warm starts proposed at once; the rest follows later, one in `LATE_START` proposals."""
TRIAL_STARTS, TRIAL_FRESH = 3, 2
"""Number of warm starts on trial, and of fresh points beside them: if no warm start beats the fresh points,
the remaining ones are dropped."""
LATE_START = 4
WINSOR = 0.9
"""Quantile above which values are clipped to it: how bad the bad ones are carries no information."""
PATIENCE = 64
"""Results after which the density stops waiting for the result of its last proposal; its worker may have
died."""
TINY = 1e-300
ROUNDING = 1e-9
PLAUSIBLE_SHARE = 0.05
"""Share of the set, the rows expected to be fastest and their ties, from which first points are chosen."""
PLAUSIBLE = 0.1
"""Limit on the slowness predicted from compiler reports, among rows for which they are known."""
POOL = 1500
"""Number of rows among which the space-filling first points are chosen."""


class PortfolioSearcher(ModelSearcher):
    """Takes turns: expected improvement, density ratio, expected improvement, density ratio, ...

    While the result of the density's last proposal is open, the process takes the density's turns.
    """

    def __init__(
        self, feasible: FeasibleSet, seed: int = 0, prior: Prior = PRIOR, launched: SizedLaunch | None = None
    ) -> None:
        super().__init__(feasible, seed)
        self._new_process = partial(GaussianProcess, feasible, seed, prior, launched)
        self._process = self._new_process()
        self._density = CategoricalDensity(feasible)
        self._imputed: dict[int, float] = {}
        self._logs: dict[int, float] = {}
        self._order: list[int] = []
        self._turn = 0
        self._scores: list[Floats | None] = [None, None]
        """[n] scores of all rows at the last turn of the density and of the process."""
        self._gains: list[float] = []
        self._counted: int | None = None
        """The last row that the density proposed."""
        self._counted_at = 0
        """Number of results at that time."""
        self._known: set[int] = set()
        self._dropped: set[int] = set()
        """Warm starts that were proposed but are hidden from both models."""
        self._excluded: list[int] = []
        self._started = 0
        self._pool: NDArray[np.intp] | None = None

    def choose(self) -> int:
        """See `SetSearcher.choose`."""
        if len(self._order) < self._first_points() or len(self._logs) < 3:
            return self._space_filling()
        if self._process.due(len(self._order)):
            self._process.refit(self._order, self._targets(self._order))
        self._turn += 1
        targets = self._targets(self._process.rows)
        mean, deviation = self._process.posterior(targets)
        gain = expected_improvement(self._best_target(), mean, deviation)
        self._gains.append(float(gain[~self.asked].max()) * self._scaling()[2])
        by_density = self._turn % 2 == 0 and not self._density_waits()
        if not by_density:
            score = gain
        else:
            score = self._density.ratio(sorted(self._logs, key=lambda r: (self._logs[r], r)))
            score = score * np.exp(-self._process.expected - self._process.foreseen)
        score = score * self._density.chance_to_run()
        score[self.asked] = -math.inf
        self._scores[0 if by_density else 1] = score
        best = int(np.argmax(score))
        if by_density:
            self._counted, self._counted_at = best, len(self.values)
        self._imputed[best] = float(mean[best])
        return best

    def _exclude(self, index: int) -> None:
        self._excluded.append(index)
        self._density.ask(index)
        self._density.tell(index, False)

    def _density_waits(self) -> bool:
        """True while the result of the density's last proposal is open: the density has learned nothing since
        and would propose the next best."""
        out = self._counted is not None and self._counted not in self.values
        return out and len(self.values) - self._counted_at < PATIENCE

    def likely(self, count: int, after: Sequence[Configuration] = ()) -> Sequence[Configuration]:
        """See `tuning.ports.CompileForecast.likely`.

        The first points are known beforehand. Later ones go by the latest score of the method whose turn is
        next.
        """
        score = self._scores[(self._turn + 1) % 2]
        before = self._rows(after)
        rows: Iterable[int]
        if score is None:
            rows = self._first_rows(before)
        else:
            best = np.argpartition(-score, min(4 * count, score.size - 1))[: 4 * count]
            rows = best[np.argsort(-score[best], kind="stable")]
        fresh = (r for r in rows if not (self.asked[r] or self._process.reported[r] or r in before))
        return [self.feasible.configuration(int(r)) for r in itertools.islice(fresh, count)]

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        """See `tuning.ports.CompileForecast.learn`."""
        index = self.feasible.index(configuration)
        if index is not None:
            self._process.foresee(index, slowness(occupancy, spills))

    def exclude(self, configuration: Configuration) -> None:
        """See `tuning.ports.CompileForecast.exclude`: similar configurations may not build either."""
        index = self.feasible.index(configuration)
        if index is not None and not self.asked[index]:
            self.asked[index] = True
            self._exclude(index)

    def start_with(self, configurations: Iterable[Configuration]) -> None:
        """Propose these first, at most eight at once, since old results may mislead."""
        super().start_with(configurations)
        self._known.update(self._starts)

    def on_ask(self, index: int) -> None:
        """See `SetSearcher.on_ask`."""
        known = index in self._known
        self._process.add(index)
        self._density.ask(index, own=not known)
        self._order.append(index)
        self._started += known

    def on_tell(self, index: int, value: float | None) -> None:
        """See `SetSearcher.on_tell`."""
        if index in self._dropped:
            return
        if value is not None:
            self._logs[index] = math.log(max(value, TINY))
        self._density.tell(index, value is not None)

    def settled(self, least: float) -> bool:
        """See `SetSearcher.settled`: the latest results brought no gain and the model expects none."""
        known = [v for v in self.values.values() if v is not None]
        if len(known) < TRUSTED_POINTS or len(self._gains) < QUIET_TURNS or self._starts:
            return False
        quiet = max(LEAST_QUIET_RESULTS, math.isqrt(len(self.feasible)))
        before = [v for v in list(self.values.values())[:-quiet] if v is not None]
        if not before or min(before) > min(known) * (1.0 + least):
            return False
        return max(self._gains[-QUIET_TURNS:]) < least

    def _first_points(self) -> int:
        first = FIRST_EXPECTED if self._process.expected.any() else FIRST_POINTS
        return max(first, min(self._started, MAX_STARTS) + FRESH_POINTS) if self._started else first

    def _misled(self) -> bool:
        """True if no start on trial was better than the fresh points beside it; False until all have
        results."""
        starts = [r for r in self._order if r in self._known][:TRIAL_STARTS]
        fresh = [r for r in self._order if r not in self._known][:TRIAL_FRESH]
        if len(starts) < TRIAL_STARTS or len(fresh) < TRIAL_FRESH:
            return False
        if any(r not in self.values for r in starts + fresh):
            return False
        return self._least_of(starts) >= self._least_of(fresh)

    def _least_of(self, rows: Sequence[int]) -> float:
        return min(self._logs.get(r, math.inf) for r in rows)

    def _begun(self) -> int:
        """Position at which the starts end; a resumed search may have proposed one by itself after them."""
        trial = TRIAL_STARTS + TRIAL_FRESH
        return next(
            (i for i, r in enumerate(self._order) if i >= trial and r not in self._known), len(self._order)
        )

    def _drop_starts(self) -> None:
        """Continue without the warm starts: a few of the slowest would mislead the models."""
        begun = self._begun()
        own = [r for i, r in enumerate(self._order) if i >= begun or r not in self._known]
        before = self._process
        self._process, self._density = self._new_process(), CategoricalDensity(self.feasible)
        for reported in np.flatnonzero(before.reported):
            self._process.foresee(int(reported), float(before.foreseen[reported]))
        excluded, self._excluded = self._excluded, []
        self._dropped |= set(self._order) - set(own)
        self._known.clear()
        self._starts.clear()
        self._started, self._order, self._logs = 0, [], {}
        for row in excluded:
            self._exclude(row)
        for row in own:
            self.on_ask(row)
            if row in self.values:
                self.on_tell(row, self.values[row])

    def _next_start(self) -> int | None:
        if self._misled():
            self._drop_starts()
        if self._started >= TRIAL_STARTS and len(self._order) < self._started + TRIAL_FRESH:
            return None
        early = len(self._order) < MAX_STARTS + FRESH_POINTS
        if self._started >= MAX_STARTS and (early or len(self._order) % LATE_START):
            return None
        return super()._next_start()

    def _scaling(self) -> tuple[float, float, float]:
        """Cap, centre and scale of the log values."""
        known = np.array(list(self._logs.values()))
        cap = float(np.quantile(known, WINSOR))
        clipped = np.minimum(known, cap)
        return cap, float(clipped.mean()), float(clipped.std()) or 1.0

    def _targets(self, rows: Sequence[int]) -> Floats:
        """Standardised log values; a failed row counts as its prediction.

        An open row counts as no better than the mean. Assuming a good result would concentrate a batch around
        it.
        """
        cap, centre, scale = self._scaling()

        def target(row: int) -> float:
            if row in self._logs:
                return (min(self._logs[row], cap) - centre) / scale
            predicted = self._imputed.get(row, 0.0)
            return predicted if row in self.values else max(predicted, 0.0)

        return np.array([target(r) for r in rows])

    def _best_target(self) -> float:
        _, centre, scale = self._scaling()
        return (min(self._logs.values()) - centre) / scale

    def _space_filling(self) -> int:
        """The plausible row, among random ones, with the largest Hamming distance to earlier proposals.

        Warm starts are ignored: a search that drops them continues as if it had had none.
        """
        pool = self._first_pool()
        pool = pool[~self.asked[pool]]
        if not pool.size:
            pool = self._pool = self._drawn(self.open_rows)
        return self._farthest(pool, self._density.nearest)

    def _first_pool(self, before: Sequence[int] = ()) -> NDArray[np.intp]:
        """The rows among which first points are chosen; `before` are as good as proposed."""
        if self._pool is None:
            unseen = ~self.asked
            unseen[list(before)] = False
            unseen[list(self._known)] = True
            self._pool = self._drawn(np.flatnonzero(unseen))
        return self._pool

    def _farthest(self, pool: NDArray[np.intp], nearest: NDArray[np.float32]) -> int:
        """The plausible row of a pool that is least similar to its nearest proposal."""
        good = pool[self._process.foreseen[pool] <= PLAUSIBLE]
        pool = good if good.size else pool
        return int(pool[np.argmin(nearest[pool])])

    def _first_rows(self, before: Sequence[int]) -> Iterator[int]:
        """Proposals before there is a model, in order: unfinished ones, warm starts on trial,
        then space-filling rows."""
        yield from self._unfinished
        yield from [r for r in self._starts if not self.asked[r]][:TRIAL_STARTS]
        pool, taken, density = self._first_pool(before), self.asked.copy(), self._density
        nearest = density.nearest
        for row in before:
            taken[row] = True
            nearest = density.nearer(nearest, row)
        while (pool := pool[~taken[pool]]).size:
            row = self._farthest(pool, nearest)
            yield row
            taken[row] = True
            nearest = density.nearer(nearest, row)

    def _drawn(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """A random sample of the plausible rows."""
        expected = self._process.expected
        limit = np.quantile(expected, PLAUSIBLE_SHARE) + ROUNDING
        plausible = rows[expected[rows] <= limit]
        rows = plausible if plausible.size else rows
        return self.rng.choice(rows, size=min(POOL, rows.size), replace=False)
