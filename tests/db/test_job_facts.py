"""Facts of a job, read without the timings of every trial, are those of its whole outcomes."""

from time import perf_counter

import pytest
from sqlalchemy import delete, update

from db.engine import Database
from db.repositories.candidates import CandidateRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.tables import CandidateRow, TrialRow
from db.views.job_facts import job_facts
from db.views.snapshot import job_baseline
from testbed.deadlines import stretched
from testbed.rows import add_job, cut_short, measured, rejected
from testbed.stages import LARGE, SMALL, searched
from tests.db.test_trial_points import MANY, many
from warpsmith.domain.templates.outcome import Outcome, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import NotFound
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.analysis.search_facts import facts_of

BUDGET_S = 2.0


def test_facts_are_those_of_all_outcomes(database: Database) -> None:
    with database.write() as session:
        ids = searched(session, add_job(session).id)
        tried: list[Configuration] = [{"BLOCK": b, "PER": p} for b in (512, 1024) for p in (1, 2, 4, 8, 16)]
        outcomes: list[Outcome] = [
            measured({LARGE: 30.0 + n, SMALL: 20.0 + n}, 0.5 + n / 10) for n in range(len(tried))
        ]
        outcomes[3], outcomes[4] = rejected("spills", Stage.COMPILE), cut_short({LARGE: 9.0}, 2.0, SMALL)
        outcomes[5] = measured({LARGE: 31.0, SMALL: 21.0}, 0.5)
        trials = TrialRepository(session)
        trials.propose(ids.job_id, ids.candidate_id, tried)
        batch = [TrialResult(c, o, 0.5) for c, o in zip(tried, outcomes, strict=True)]
        trials.finish(ids.job_id, ids.candidate_id, None, batch)
    with database.read() as session:
        found = job_facts(session, ids.job_id)
        rows = TrialRepository(session).finished(ids.candidate_id)
        whole = [(t.configuration, t.outcome) for t in rows if t.outcome is not None]
        template = CandidateRepository(session).get(ids.candidate_id).template
        baseline = job_baseline(session, ids.job_id)
        assert baseline is not None
        assert found == facts_of(scale_job(), baseline, template, whole)
    assert found is not None and found.best is not None
    assert found.best.configuration == tried[0], "of two alike the first"
    assert found.effects and (found.trials, found.measured) == (14, 10)


def test_there_are_none_before_the_baseline(database: Database) -> None:
    with database.write() as session:
        job_id = add_job(session).id
    with database.read() as session:
        assert job_facts(session, job_id) is None
        with pytest.raises(NotFound):
            job_facts(session, "nothing")
    with database.of("somebody").read() as session, pytest.raises(NotFound):
        job_facts(session, job_id)


@pytest.mark.alone
def test_facts_of_ten_thousand_trials_come_soon(database: Database) -> None:
    with database.write() as session:
        ids = searched(session, add_job(session).id)
        session.execute(delete(TrialRow).where(TrialRow.job_id == ids.job_id))
        many(session, (ids.job_id, ids.candidate_id))
        best = update(CandidateRow).where(CandidateRow.id == ids.candidate_id)
        session.execute(best.values(best_objective=0.5001))
    with database.read() as session:
        began_s = perf_counter()
        found = job_facts(session, ids.job_id)
        took_s = perf_counter() - began_s
    print(f"{1e3 * took_s:.0f} ms")
    assert found is not None and found.trials == MANY
    assert took_s < stretched(BUDGET_S)
