"""Optuna, in one place: searchers as samplers. Stored studies are written by `search.stored_study`.

Inside a slice the study lives in memory, where asking costs about a millisecond.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from warpsmith.domain.space import Configuration, Space
from warpsmith.search.feasible_set import FeasibleSet
from warpsmith.search.set_searcher import SetSearcher

TPE_RETRIES = 20

optuna.logging.set_verbosity(optuna.logging.WARNING)


class SetSampler(BaseSampler):
    """Any of our searchers as an Optuna sampler: only feasible, never repeated configurations."""

    def __init__(self, searcher: SetSearcher) -> None:
        self.searcher = searcher

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters are sampled together."""
        return dict(distributions(self.searcher.feasible.space))

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next configuration. Raises StopIteration when the set is exhausted."""
        found = self.searcher.ask(1)
        if not found:
            raise StopIteration
        return dict(found[0])

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Never needed: every parameter is in the relative space."""
        raise KeyError(param_name)


class StudySearcher:
    """Implements `tuning.ports.Searcher` through an Optuna study in memory (ask and tell).

    Args:
        least_gain: relative gain below which the search ends; 0: when the set does.
    """

    def __init__(self, searcher: SetSearcher, least_gain: float = 0.0) -> None:
        self._searcher = searcher
        self._least_gain = least_gain
        self._study = optuna.create_study(sampler=SetSampler(searcher))
        self._distributions = distributions(searcher.feasible.space)
        self._open: dict[str, optuna.Trial] = {}

    @property
    def searcher(self) -> SetSearcher:
        """The searcher that decides."""
        return self._searcher

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`."""
        out: list[Configuration] = []
        if self._least_gain and self._searcher.settled(self._least_gain):
            return out
        while len(out) < count and not self._searcher.asked.all():
            trial = self._study.ask(dict(self._distributions))
            configuration = dict(trial.params)
            self._open[_name(configuration)] = trial
            out.append(configuration)
        return out

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`."""
        self._searcher.tell(configuration, value)
        trial = self._open.pop(_name(configuration), None)
        if trial is not None:
            state = TrialState.FAIL if value is None else TrialState.COMPLETE
            self._study.tell(trial, value, state=state)

    def likely(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.CompileAwareSearcher.likely`."""
        return self._searcher.likely(count)

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        """See `tuning.ports.CompileAwareSearcher.learn`."""
        self._searcher.learn(configuration, occupancy, spills)

    def exclude(self, configuration: Configuration) -> None:
        """See `tuning.ports.CompileAwareSearcher.exclude`."""
        self._searcher.exclude(configuration)


class TpeSearcher(SetSearcher):
    """Optuna's own TPE over the set; what it proposes outside the set, or twice, is asked again."""

    def __init__(self, feasible: FeasibleSet, seed: int = 0) -> None:
        super().__init__(feasible, seed)
        self._study = optuna.create_study(sampler=TPESampler(seed=seed))
        self._distributions = distributions(feasible.space)
        self._open: dict[int, optuna.Trial] = {}

    def choose(self) -> int:
        """See `SetSearcher.choose`."""
        for _ in range(TPE_RETRIES):
            trial = self._study.ask(dict(self._distributions))
            index = self.feasible.index(dict(trial.params))
            if index is not None and not self.asked[index]:
                self._open[index] = trial
                return index
            self._study.tell(trial, state=TrialState.FAIL)
        return int(self.rng.choice(self.open_rows))

    def on_tell(self, index: int, value: float | None) -> None:
        """See `SetSearcher.on_tell`."""
        trial = self._open.pop(index, None)
        if trial is not None:
            state = TrialState.FAIL if value is None else TrialState.COMPLETE
            self._study.tell(trial, value, state=state)
        elif value is not None:
            self._study.add_trial(_frozen(self.feasible.space, self.feasible.configuration(index), value))


def distributions(space: Space) -> Mapping[str, BaseDistribution]:
    """Every parameter as Optuna knows it: a choice among its values."""
    return {p.name: CategoricalDistribution(p.values) for p in space.parameters}


def _frozen(space: Space, configuration: Configuration, value: float) -> FrozenTrial:
    return optuna.trial.create_trial(
        state=TrialState.COMPLETE,
        value=value,
        params=dict(configuration),
        distributions=dict(distributions(space)),
    )


def _name(configuration: Configuration) -> str:
    return repr(sorted(configuration.items()))
