"""Studies in the database, which `optuna.load_study` and optuna-dashboard open as any other.

Our own rows are the truth; finished trials are appended to the stored study afterwards, and appending is
idempotent. Optuna's storage has no call for many trials at once and takes some ten milliseconds for each,
so they are inserted through its own tables. These are private parts of Optuna, for which it has no public
substitute: `pyproject.toml` pins its version, and a test compares the rows to what `Study.add_trial` stores.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.distributions import distribution_to_json
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import TrialState
from sqlalchemy import delete, func, insert, inspect, select
from sqlalchemy.orm import Session

from warpsmith.domain.templates.space import Configuration, Space
from warpsmith.search.searchers.optuna_study import distributions

NUMBER = "warpsmith_number"
REASON = "warpsmith_reason"
AT_ONCE = 500
"""Trials per transaction."""


@dataclass(frozen=True)
class StudyTrial:
    """A finished trial, in the form in which a study shows it."""

    number: int
    configuration: Configuration
    value: float | None
    """Objective; None: rejected, or pruned."""
    reason: str = ""
    pruned: bool = False
    """True if the trial was cut short."""

    @property
    def state(self) -> TrialState:
        """The state in Optuna's terms."""
        if self.pruned:
            return TrialState.PRUNED
        return TrialState.FAIL if self.value is None else TrialState.COMPLETE


def export(
    url: str, study_name: str, space: Space, trials: Sequence[StudyTrial], *, create_tables: bool = True
) -> int:
    """Append finished trials to a stored study, which is created if it is missing; returns how many were new.

    Calling it again with the same trials changes nothing: each carries its number.
    """
    storage = RDBStorage(url, skip_table_creation=not create_tables)
    try:
        optuna.create_study(study_name=study_name, storage=storage, load_if_exists=True, direction="minimize")
        study_id = storage.get_study_id_from_name(study_name)
        added = 0
        for first in range(0, len(trials), AT_ONCE):
            with Session(storage.engine) as session, session.begin():
                added += _append(session, study_id, space, trials[first : first + AT_ONCE])
        return added
    finally:
        storage.engine.dispose()


def delete_studies(session: Session, names: Sequence[str]) -> int:
    """Delete studies with their trials in the session's transaction; returns how many there were."""
    if not inspect(session.connection()).has_table(models.StudyModel.__tablename__):
        return 0
    named = models.StudyModel.study_name.in_(names)
    studies = session.scalars(select(models.StudyModel.study_id).where(named)).all()
    trials = select(models.TrialModel.trial_id).where(models.TrialModel.study_id.in_(studies))
    for table in reversed(models.BaseModel.metadata.sorted_tables):
        if "trial_id" in table.c:
            session.execute(delete(table).where(table.c.trial_id.in_(trials)))
        elif "study_id" in table.c:
            session.execute(delete(table).where(table.c.study_id.in_(studies)))
    return len(studies)


def _append(session: Session, study_id: int, space: Space, trials: Sequence[StudyTrial]) -> int:
    # The lock makes others that add to this study wait: a trial's number is a count.
    models.StudyModel.find_or_raise_by_id(study_id, session, for_update=True)
    of_study = models.TrialModel.study_id == study_id
    attribute = models.TrialUserAttributeModel
    told = select(attribute.value_json).join(models.TrialModel).where(of_study, attribute.key == NUMBER)
    known = {json.loads(text) for text in session.scalars(told)}
    fresh = [t for t in trials if t.number not in known]
    if not fresh:
        return 0
    before = session.execute(select(func.count()).select_from(models.TrialModel).where(of_study)).scalar_one()
    now = datetime.now(UTC).replace(tzinfo=None)
    rows = [
        {
            "number": before + place,
            "study_id": study_id,
            "state": trial.state,
            "_datetime_start_utc": now,
            "_datetime_complete_utc": now,
        }
        for place, trial in enumerate(fresh)
    ]
    query = insert(models.TrialModel).returning(models.TrialModel.trial_id, sort_by_parameter_order=True)
    ids = session.scalars(query, rows).all()
    made = list(zip(ids, fresh, strict=True))
    _insert(session, models.TrialParamModel, _parameters(space, made))
    _insert(session, models.TrialUserAttributeModel, _attributes(made))
    _insert(session, models.TrialValueModel, _values(made))
    return len(fresh)


def _parameters(space: Space, made: Sequence[tuple[int, StudyTrial]]) -> list[dict[str, Any]]:
    of_space = distributions(space)
    texts = {name: distribution_to_json(d) for name, d in of_space.items()}
    return [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": of_space[name].to_internal_repr(value),
            "distribution_json": texts[name],
        }
        for trial_id, trial in made
        for name, value in trial.configuration.items()
    ]


def _attributes(made: Sequence[tuple[int, StudyTrial]]) -> list[dict[str, Any]]:
    said = [(i, NUMBER, t.number) for i, t in made] + [(i, REASON, t.reason) for i, t in made if t.reason]
    return [{"trial_id": i, "key": key, "value_json": json.dumps(value)} for i, key, value in said]


def _values(made: Sequence[tuple[int, StudyTrial]]) -> list[dict[str, Any]]:
    rows = []
    for trial_id, trial in made:
        if trial.value is not None:
            value, kind = models.TrialValueModel.value_to_stored_repr(trial.value)
            rows.append({"trial_id": trial_id, "objective": 0, "value": value, "value_type": kind})
    return rows


def _insert(session: Session, table: Any, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        session.execute(insert(table), rows)
