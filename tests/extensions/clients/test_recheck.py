"""An old result measured again: the job that does it, and what is said of each workload."""

import pytest

from tests.unit.cli.test_report import comparison, entry, result
from warpsmith.domain.templates.outcome import Verdict
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.commands.recheck_changes import (
    LABEL,
    MORE_TRIALS,
    changes,
    environment_lines,
    recheck_job,
)

LARGE, SMALL = "n=4096", "n=1001"
BEST: Configuration = {"BLOCK": 256, "PER": 4}


def test_the_job_has_a_budget_for_the_winners_and_asks_no_model() -> None:
    old = result()
    job = recheck_job(old)
    assert (job.budget.rounds, job.budget.trials) == (1, 1 + MORE_TRIALS)
    assert job.budget.seconds >= old.job.budget.seconds
    assert job.agents.provider == "rules"
    assert job.labels[LABEL] == old.id
    assert (job.kernel, job.workloads, job.space) == (old.job.kernel, old.job.workloads, old.job.space)


def test_a_result_without_a_winner_is_refused() -> None:
    with pytest.raises(InvalidInput, match="job1 has no winner to check"):
        recheck_job(result(dispatch=(entry(LARGE), entry(SMALL))))


@pytest.mark.parametrize(
    ("speedup", "words"),
    [
        ((2.02, 1.96, 2.08), "n=4096: 2.00x then, 2.02x [1.96, 2.08] now: as before"),
        ((1.5, 1.45, 1.55), "n=4096: 2.00x then, 1.50x [1.45, 1.55] now: less than before"),
        ((3.0, 2.9, 3.1), "n=4096: 2.00x then, 3.00x [2.90, 3.10] now: more than before"),
    ],
)
def test_a_gain_that_holds(speedup: tuple[float, float, float], words: str) -> None:
    new = result(comparisons=(comparison(LARGE, speedup, Verdict.FASTER),))
    (change,) = changes(result(), new, [BEST])
    assert change.serves
    assert change.words == words


def test_a_gain_by_another_configuration_says_so() -> None:
    other = comparison(LARGE, (2.0, 1.9, 2.1), Verdict.FASTER).model_copy(update={"configuration_key": "new"})
    (change,) = changes(result(), result(comparisons=(other,)), [BEST])
    assert change.words.endswith("as before, by another configuration")


def test_a_lost_gain_is_told_whether_compared_or_not() -> None:
    slower = comparison(LARGE, (0.97, 0.95, 0.99), Verdict.SLOWER)
    for comparisons in ((slower,), ()):
        new = result(comparisons=comparisons, dispatch=(entry(LARGE), entry(SMALL)))
        (change,) = changes(result(), new, [BEST])
        assert not change.serves
        assert change.words == "n=4096: 2.00x then, no gain now: keep your own kernel"


def test_a_winner_that_was_not_tried_is_not_called_lost() -> None:
    new = result(comparisons=(), dispatch=(entry(LARGE), entry(SMALL)))
    other: Configuration = {"BLOCK": 32, "PER": 1}
    (change,) = changes(result(), new, [other])
    assert not change.serves
    assert change.words.startswith("n=4096: 2.00x then, not checked:")


def test_what_is_new_of_the_environment_has_an_arrow() -> None:
    lines = list(environment_lines(result(), result(driver="1.3")))
    assert lines == ["device: Test GPU", "driver: 1.2 → 1.3", "warpsmith: 0.1.0"]
