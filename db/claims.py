"""Several slices of one search: each configuration is claimed before it runs, and results are shared.

The unique key of (candidate, configuration) decides; no lock is held while anybody searches.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.engine import Database, utc_now
from db.repositories.trials import TrialRepository
from warpsmith.domain.outcome import Measured
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.tuning.ports import Searcher

HEAR_S = 1.0
"""How often a slice asks what the others have found; they commit as often."""
LATE_S = 5.0
"""A commit may become visible so much later than the time that it carries."""


class SharedSearcher:
    """Implements `tuning.ports.Searcher` over another: what it hands out, no other slice runs.

    Args:
        owned: configurations that this slice has claimed before.
        started: what was finished before this has been told already.
    """

    def __init__(
        self,
        inner: Searcher,
        database: Database,
        job_id: str,
        candidate_id: str,
        task_id: str,
        owned: Sequence[Configuration],
        started: datetime,
    ) -> None:
        self._inner = inner
        self._database = database
        self._job_id = job_id
        self._candidate_id = candidate_id
        self._task_id = task_id
        self._owned = {configuration_key(c) for c in owned}
        self._since = started - timedelta(seconds=LATE_S)
        self._told: set[str] = set()
        self._hear_at = time.monotonic() + HEAR_S

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`."""
        if time.monotonic() >= self._hear_at:
            self._hear()
        granted: list[Configuration] = []
        while len(granted) < count:
            asked = self._inner.ask(count - len(granted))
            if not asked:
                break
            granted += self._claim(asked)
        return granted

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`."""
        self._inner.tell(configuration, value)

    def _claim(self, asked: Sequence[Configuration]) -> list[Configuration]:
        fresh = [c for c in asked if configuration_key(c) not in self._owned]
        won: list[Configuration] = []
        if fresh:
            with self._database.write() as session:
                _without_waiting_for_the_disk(session)
                trials = TrialRepository(session)
                won = trials.claim(self._job_id, self._candidate_id, self._task_id, fresh)
        keys = {configuration_key(c) for c in won} | self._owned
        return [c for c in asked if configuration_key(c) in keys]

    def _hear(self) -> None:
        now = utc_now()
        with self._database.read() as session:
            rows = TrialRepository(session).heard(self._candidate_id, self._task_id, self._since)
        for row in rows:
            if row.key not in self._told:
                self._told.add(row.key)
                value = row.outcome.objective if isinstance(row.outcome, Measured) else None
                self._inner.tell(row.configuration, value)
        self._since = now - timedelta(seconds=LATE_S)
        self._hear_at = time.monotonic() + HEAR_S


def _without_waiting_for_the_disk(session: Session) -> None:
    """A claim that a crash of the server forgets is made again."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SET LOCAL synchronous_commit = off"))
