"""Optuna's TPE as one of our searchers. Stored studies are written by `search.stored_study`."""

from collections.abc import Mapping

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState

from warpsmith.domain.templates.space import Configuration, Space
from warpsmith.search.searchers.set_searcher import SetSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet

TPE_RETRIES = 20

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TpeSearcher(SetSearcher):
    """Optuna's TPE over the set; a proposal outside the set, or a repeated one, is asked for again."""

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
    """Optuna's distribution of every parameter: a choice among its values."""
    return {p.name: CategoricalDistribution(p.values) for p in space.parameters}


def _frozen(space: Space, configuration: Configuration, value: float) -> FrozenTrial:
    return optuna.trial.create_trial(
        state=TrialState.COMPLETE,
        value=value,
        params=dict(configuration),
        distributions=dict(distributions(space)),
    )
