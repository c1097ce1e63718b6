"""Stored studies are what Optuna itself would have stored, beside our own tables."""

import time
from collections.abc import Iterator

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from warpsmith.domain.templates.space import Parameter, Space
from warpsmith.search.searchers.optuna_study import distributions
from warpsmith.search.searchers.stored_study import AT_ONCE, NUMBER, REASON, StudyTrial, export

SPACE = Space(
    parameters=(
        Parameter(name="A", values=(1, 2, 4)),
        Parameter(name="SHARE", values=(0.5, 1.0)),
        Parameter(name="FAST", values=(True, False)),
        Parameter(name="W", values=("x", "y")),
    )
)
TRIALS = [
    StudyTrial(0, {"A": 1, "SHARE": 0.5, "FAST": True, "W": "x"}, 1.5),
    StudyTrial(3, {"A": 2, "SHARE": 1.0, "FAST": False, "W": "y"}, None, "compile: no"),
    StudyTrial(5, {"A": 1, "SHARE": 1.0, "FAST": True, "W": "x"}, None, pruned=True),
    StudyTrial(7, {"A": 4, "SHARE": 1.0, "FAST": True, "W": "y"}, 0.25),
]

STATES = {0: TrialState.COMPLETE, 3: TrialState.FAIL, 5: TrialState.PRUNED, 7: TrialState.COMPLETE}


@pytest.fixture
def storage(database_url: str) -> Iterator[RDBStorage]:
    """The database, as Optuna opens it."""
    made = RDBStorage(database_url)
    yield made
    made.remove_session()
    made.engine.dispose()


def test_a_study_is_what_optuna_would_have_stored(database_url: str, storage: RDBStorage) -> None:
    theirs = optuna.create_study(study_name="theirs", storage=storage)
    for trial in TRIALS:
        attributes = {NUMBER: trial.number} | ({REASON: trial.reason} if trial.reason else {})
        theirs.add_trial(
            optuna.trial.create_trial(
                state=STATES[trial.number],
                value=trial.value,
                params=dict(trial.configuration),
                distributions=dict(distributions(SPACE)),
                user_attrs=attributes,
            )
        )
    assert export(database_url, "ours", SPACE, TRIALS) == len(TRIALS)
    ours = optuna.load_study(study_name="ours", storage=storage)

    def told(study: optuna.Study) -> list[object]:
        return [
            (t.number, t.state, t.values, t.params, t.distributions, t.user_attrs, t.system_attrs)
            for t in study.trials
        ]

    assert told(ours) == told(theirs)
    assert ours.best_params == theirs.best_params
    for stored in ours.trials:
        assert stored.datetime_start is not None and stored.duration is not None
        assert abs(stored.datetime_start.timestamp() - time.time()) < 60, "in local time, as Optuna has it"
    asked = ours.ask(dict(distributions(SPACE)))
    assert asked.number == len(TRIALS), "the study goes on as any other"
    ours.tell(asked, 3.0)
    assert len(ours.trials) == len(TRIALS) + 1


def test_exporting_again_appends_what_is_new_alone(database_url: str, storage: RDBStorage) -> None:
    assert export(database_url, "job/0", SPACE, TRIALS[:1]) == 1
    assert export(database_url, "job/0", SPACE, TRIALS) == 3
    assert export(database_url, "job/0", SPACE, TRIALS) == 0
    assert export(database_url, "other", SPACE, TRIALS[:2]) == 2, "another study has numbers of its own"
    study = optuna.load_study(study_name="job/0", storage=storage)
    assert [t.number for t in study.trials] == [0, 1, 2, 3]
    assert [t.user_attrs[NUMBER] for t in study.trials] == [0, 3, 5, 7]
    assert study.best_value == 0.25


def test_many_trials_are_stored_in_batches(database_url: str, storage: RDBStorage) -> None:
    many = [StudyTrial(n, TRIALS[n % 3].configuration, float(n)) for n in range(2 * AT_ONCE + 7)]
    assert export(database_url, "many", SPACE, many) == len(many)
    study = optuna.load_study(study_name="many", storage=storage)
    assert [t.value for t in study.trials] == [t.value for t in many]
    assert [t.number for t in study.trials] == list(range(len(many)))
