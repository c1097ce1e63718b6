"""What a worker keeps of a job: one seed until the verification, and references as long as there is room."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from testbed.fakes import FakeReference
from tests.worker.test_execute import context, handle_all, submit  # noqa: F401  a fixture
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Family, WorkloadPlan, plan_workload
from warpsmith.domain.state import TaskKind
from warpsmith.errors import InvalidInput
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.verify.run_report import Array, ReferenceCase
from worker import task_runner
from worker.device import cached_references
from worker.device.cached_references import CachedReferences, JobSeeds
from worker.device.process_context import Context

JOB = scale_job()
Outcomes = Sequence[Mapping[str, Array] | InvalidInput]


@dataclass
class Counting(FakeReference):
    """Remembers the plans that it was asked for."""

    asked: list[WorkloadPlan] = field(default_factory=list)
    fails: bool = False

    def numpy_many(self, source: str, function: str, cases: Sequence[ReferenceCase]) -> Outcomes:
        self.asked += [plan for plan, _ in cases]
        if self.fails:
            return [InvalidInput("reference", "no")] * len(cases)
        return super().numpy_many("def f(", "f", cases)


def case(n: int, seed: int = 1, variant: int = 0) -> ReferenceCase:
    plan = plan_workload(JOB.kernel, Workload(dimensions={"n": n}), DEVICE.scope() | JOB.space.defaults, seed)
    return replace(plan, variant=variant), {"n": n}


def kept(numbers: int) -> tuple[CachedReferences, Counting]:
    """Room for so many float64."""
    inner = Counting()
    return CachedReferences(inner, 8 * numbers), inner


def ask(of: CachedReferences, *cases: ReferenceCase, source: str = "s") -> Outcomes:
    return of.numpy_many(source, "f", cases)


def test_the_same_inputs_are_computed_once_and_nobody_can_change_the_answer() -> None:
    store, inner = kept(100)
    first = ask(store, case(10), case(20))
    again = ask(store, case(20), case(30), case(10))
    assert [p.workload for p in inner.asked] == ["n=10", "n=20", "n=30"]
    for outputs, other in ((first[0], again[2]), (first[1], again[0])):
        assert isinstance(outputs, Mapping)
        assert isinstance(other, Mapping)
        assert outputs["y"] is other["y"]
        with pytest.raises(ValueError, match="read-only"):
            np.copyto(outputs["y"], 0.0)
    assert store.size_bytes == 8 * 60


@pytest.mark.parametrize("other", [case(10, seed=2), case(11)])
def test_other_inputs_are_other_answers(other: ReferenceCase) -> None:
    store, inner = kept(100)
    ask(store, case(10))
    ask(store, other)
    ask(store, case(10), source="another")
    assert len(inner.asked) == 3


def test_what_was_used_longest_ago_makes_room() -> None:
    store, inner = kept(50)
    ask(store, case(20), case(25))
    ask(store, case(20))
    ask(store, case(30))
    inner.asked.clear()
    ask(store, case(20), case(30))
    assert inner.asked == []
    assert store.size_bytes == 8 * 50
    ask(store, case(25))
    assert [p.workload for p in inner.asked] == ["n=25"]


def test_what_is_too_large_is_not_kept_and_nothing_is_without_room() -> None:
    for room in (0, 9):
        store, inner = kept(room)
        assert all(isinstance(found, Mapping) for found in ask(store, case(10)))
        ask(store, case(10))
        assert len(inner.asked) == 2
        assert store.size_bytes == 0


def test_draws_of_one_task_and_failures_are_not_kept() -> None:
    store, inner = kept(100)
    ask(store, case(10, variant=1234))
    inner.fails = True
    ask(store, case(20))
    assert store.size_bytes == 0


def test_every_job_has_a_seed_of_its_own_for_as_long_as_it_is_worked_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cached_references, "MOST_SEEDS", 2)
    seeds = JobSeeds()
    first, second = seeds.of("a"), seeds.of("b")
    assert first != second
    assert seeds.of("a") == first
    seeds.of("c")
    assert seeds.of("a") == first, "b was used longest ago"
    assert seeds.of("b") != second
    assert JobSeeds().of("a") != first


def test_baseline_and_search_share_inputs_and_the_verification_has_others(
    context: Context,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = Counting()
    setup = context.device_setup()
    setup.ports = replace(setup.ports, reference=inner)
    asked: dict[TaskKind, list[WorkloadPlan]] = defaultdict(list)

    def noted(kind: TaskKind, do: task_runner.Worker) -> task_runner.Worker:
        def run(*args: object) -> object:
            inner.asked = asked[kind]
            return do(*args)  # type: ignore[arg-type]

        return run  # type: ignore[return-value]

    work = {kind: noted(kind, do) for kind, do in task_runner.WORK.items()}
    monkeypatch.setattr(task_runner, "WORK", work)
    submit(context.database, scale_job(budget={"trials": 8, "seconds": 600}))
    handle_all(context)
    seeds = {kind: {p.seed for p in plans} for kind, plans in asked.items() if plans}
    assert seeds[TaskKind.BASELINE] == seeds[TaskKind.SLICE]
    assert len(seeds[TaskKind.BASELINE]) == len(seeds[TaskKind.VERIFY]) == 1
    assert seeds[TaskKind.VERIFY].isdisjoint(seeds[TaskKind.BASELINE])
    # Edge cases are numbered alike everywhere; what they hold follows from the seed.
    drawn = {k: [p for p in plans if p.family is not Family.EDGE_CASE] for k, plans in asked.items()}
    others = [{p.variant for p in drawn[kind] if p.variant} for kind in (TaskKind.BASELINE, TaskKind.SLICE)]
    assert all(others)
    assert others[0].isdisjoint(others[1]), "another draw is another one in each task"
