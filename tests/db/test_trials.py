from itertools import islice, product

import pytest

from db.engine import Database
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.search_histories import HistoryRepository
from db.repositories.trials import TrialRepository, TrialResult
from testbed.rows import add_candidate, add_job, cut_short, measured, rejected, unfinished, workload_rows
from warpsmith.domain.state import CandidateState, TrialState
from warpsmith.domain.templates.outcome import Outcome, Stage
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.testing.jobs import scale_job

SMALL, LARGE = (w.key for w in scale_job().workloads)


def _configurations(count: int) -> list[Configuration]:
    every = product((32, 64, 128, 256), (1, 2, 4, 8))
    return [{"BLOCK": b, "PER": p} for b, p in islice(every, count)]


def _candidate(database: Database) -> tuple[str, str]:
    with database.write() as session:
        job_id = add_job(session).id
        return job_id, add_candidate(session, job_id).id


def _finish(database: Database, ids: tuple[str, str], *trials: tuple[Configuration, Outcome]) -> int:
    with database.write() as session:
        batch = [TrialResult(configuration, outcome, 0.5) for configuration, outcome in trials]
        return TrialRepository(session).finish(*ids, "task", batch)


def test_proposed_once_finished_once(database: Database) -> None:
    ids = _candidate(database)
    a, b, c = _configurations(3)
    with database.write() as session:
        TrialRepository(session).propose(*ids, [a, b])
        TrialRepository(session).propose(*ids, [b, c])
    assert _finish(database, ids, (b, rejected("wrong"))) == 1
    assert _finish(database, ids, (b, measured({SMALL: 1.0}, 0.5))) == 0, "the first outcome stays"
    with database.read() as session:
        repository = TrialRepository(session)
        assert [t.configuration for t in unfinished(session, ids[1])] == [a, c]
        assert [(t.configuration, t.outcome) for t in repository.finished(ids[1])] == [(b, rejected("wrong"))]
        job = JobRepository(session).get(ids[0])
        assert (job.trials_done, job.trials_rejected) == (1, 1)
        candidate = CandidateRepository(session).get(ids[1])
        assert (candidate.trials, candidate.measured, candidate.best_objective) == (1, 0, None)


def test_what_was_never_proposed_cannot_finish(database: Database) -> None:
    ids = _candidate(database)
    assert _finish(database, ids, (_configurations(1)[0], rejected("no"))) == 0


def test_best_so_far_follows(database: Database) -> None:
    ids = _candidate(database)
    a, b, c = _configurations(3)
    with database.write() as session:
        TrialRepository(session).propose(*ids, [a, b, c])
    _finish(database, ids, (a, measured({SMALL: 4.0, LARGE: 8.0}, 0.8)))
    _finish(database, ids, (b, measured({SMALL: 2.0, LARGE: 9.0}, 0.7)), (c, measured({SMALL: 3.0}, 0.9)))
    with database.read() as session:
        best = {w.key: w.best_us for w in workload_rows(session, ids[0])}
        assert best == {SMALL: 2.0, LARGE: 8.0}
        assert CandidateRepository(session).get(ids[1]).best_objective == 0.7
        assert [t.objective for t in TrialRepository(session).measured(ids[0])] == [0.7, 0.8, 0.9]


def test_what_was_cut_short_counts_as_nothing_but_a_trial(database: Database) -> None:
    ids = _candidate(database)
    a, b, c = _configurations(3)
    with database.write() as session:
        TrialRepository(session).propose(*ids, [a, b, c])
        CandidateRepository(session).set_reuse_key(ids[1], "same")
    _finish(database, ids, (a, measured({SMALL: 4.0, LARGE: 8.0}, 0.8)), (b, rejected("no")))
    _finish(database, ids, (c, cut_short({SMALL: 1.0}, 0.1, LARGE)))
    with database.read() as session:
        trials, history = TrialRepository(session), HistoryRepository(session)
        job, candidate = JobRepository(session).get(ids[0]), CandidateRepository(session).get(ids[1])
        assert (job.trials_done, job.trials_rejected, trials.cut_short(ids[0])) == (3, 1, 1)
        assert (candidate.trials, candidate.measured, candidate.best_objective) == (3, 1, 0.8)
        best = {w.key: w.best_us for w in workload_rows(session, ids[0])}
        assert best == {SMALL: 4.0, LARGE: 8.0}
        assert [t.configuration for t in trials.measured(ids[0])] == [a]
        assert [g.count for g in trials.rejections(ids[0])] == [1]
        assert sorted(t.key for t in trials.known("same", 60)) == sorted(map(configuration_key, (a, b)))
        told = [(a, 0.8), (b, None), (c, 0.1)]
        assert history.of(ids[1]) == told, "a searcher hears the estimate"
        assert history.results([t.id for t in trials.finished(ids[1])]) == told


def test_a_later_slice_hears_of_the_latest_that_ran_on_all_workloads(database: Database) -> None:
    ids = _candidate(database)
    with database.write() as session:
        other = (ids[0], add_candidate(session, ids[0], 1).id)
    a, b, c, d, e = _configurations(5)
    with database.write() as session:
        TrialRepository(session).propose(*ids, [a, b, c, d, e])
        TrialRepository(session).propose(*other, [a])
    outcomes = [measured({SMALL: us, LARGE: 8.0}, us / 5) for us in (4.0, 3.0, 2.0)]
    _finish(database, ids, (a, outcomes[0]), (b, cut_short({SMALL: 1.0}, 0.1, LARGE)), (c, outcomes[1]))
    _finish(database, ids, (d, rejected("no")), (e, outcomes[2]))
    _finish(database, other, (a, measured({SMALL: 9.0}, 0.9)))
    with database.read() as session:
        history = HistoryRepository(session)
        assert history.measured(ids[1], 10) == outcomes
        assert history.measured(ids[1], 2) == outcomes[1:]


def test_pages_over_two_candidates_are_in_the_order_of_proposal(database: Database) -> None:
    job_id, first = _candidate(database)
    configurations = _configurations(6)
    with database.write() as session:
        second = add_candidate(session, job_id, 1).id
        TrialRepository(session).propose(job_id, first, configurations[:2])
        TrialRepository(session).propose(job_id, second, configurations[:3])
        TrialRepository(session).propose(job_id, first, configurations[4:])
    with database.read() as session:
        repository = TrialRepository(session)
        rows = list(repository.page(job_id, limit=4))
        rows += repository.page(job_id, after=rows[-1].number, limit=4)
    assert [r.candidate_id for r in rows] == [first] * 2 + [second] * 3 + [first] * 2
    assert all(r.state is TrialState.PROPOSED for r in rows)


def test_like_rejections_count_together(database: Database) -> None:
    ids = _candidate(database)
    a, b, c, d = _configurations(4)
    with database.write() as session:
        TrialRepository(session).propose(*ids, [a, b, c, d])
    _finish(database, ids, (a, rejected("y is wrong: 3 of 4096 differ")), (b, rejected("no", Stage.COMPILE)))
    _finish(database, ids, (c, rejected("y is wrong: 17 of 1001 differ")), (d, measured({SMALL: 1.0}, 1.0)))
    with database.read() as session:
        groups = TrialRepository(session).rejections(ids[0])
    found = [(g.first.stage, g.count, g.first.configuration) for g in groups]
    assert found == [("correctness", 2, a), ("compile", 1, b)]


@pytest.mark.parametrize("state", [CandidateState.SEARCHED, CandidateState.REJECTED])
def test_candidate_moves_once(database: Database, state: CandidateState) -> None:
    _, candidate_id = _candidate(database)
    with database.write() as session:
        repository = CandidateRepository(session)
        assert repository.set_state(candidate_id, state)
        assert not repository.set_state(candidate_id, state)
        repository.set_feasible(candidate_id, 16)
        assert repository.get(candidate_id).feasible == 16
        assert repository.get(candidate_id).template.space == scale_job().space


def test_a_shared_search_stays_settled_at_its_largest_number_and_exhausted(database: Database) -> None:
    _, candidate = _candidate(database)
    with database.write() as session:
        repository = CandidateRepository(session)
        for said, settled in ((5, (5, False)), (3, (5, False)), (None, (5, True)), (8, (8, True))):
            repository.settle(candidate, said)
            assert repository.settled(candidate) == settled
