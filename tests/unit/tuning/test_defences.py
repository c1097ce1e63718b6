"""Task gate, floor, drift, timed launches and families over a fake device."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from testbed.fakes import FakeReference, fake_ports
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.device import Ceilings
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import CacheState, Job, Tolerance, Workload
from warpsmith.domain.jobs.plan import BufferPlan, Compiled, Family, WorkloadPlan
from warpsmith.domain.templates.outcome import CompileFacts, Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.measure.roofline import below_floor, floor_of
from warpsmith.settings import Settings
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks.extra_cases import MAX_NEIGHBOURS, neighbours
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.outputs.binary_checks import undeclared_globals, undeclared_words
from warpsmith.tuning.outputs.output_checks import CheckedRun, CheckRules, check_run
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.tuning.timing import drift
from warpsmith.tuning.timing.drift import DriftWatch, corrected
from warpsmith.tuning.trials.first_trial import run_gate, run_trial
from warpsmith.verify.compare import STRAYS, ErrorBudget, compare
from warpsmith.verify.defences import Defences
from warpsmith.verify.inputs import draw_buffer, draw_inputs
from warpsmith.verify.run_report import Array, RunReport

JOB = scale_job()
LOOSE = Tolerance(rtol=1e-2, atol=1e-2)


def steady(configuration: Configuration, workload: str) -> float:
    return 100.0


def trial(fault: str, on: Defences | None = None, job: Job = JOB, whole: bool = True) -> Outcome:
    healthy, _ = fake_ports(steady)
    baseline = measure_baseline(DeviceSession(job, healthy))
    assert baseline.refused == ""
    ports, _ = fake_ports(steady, lambda c: fault)
    session = DeviceSession(job, ports if on is None else replace(ports, defences=on))
    session.baseline.learn(baseline)
    kernel = session.inputs.user_template.configured(job.space.defaults)
    times = {t.workload: time_us(job, t) or 0.0 for t in baseline.timings}
    run = run_gate if whole else run_trial
    return run(session, session.inputs.user_template, kernel, session.compile(kernel), times)


@pytest.mark.parametrize(
    ("fault", "defence", "words"),
    [("timed", "timed_launches", "in a launch that was timed"), ("unsteady", "determinism", "two launches")],
)
def test_a_defence_finds_what_the_first_launch_does_not_show(fault: str, defence: str, words: str) -> None:
    outcome = trial(fault)
    assert isinstance(outcome, Rejected)
    assert outcome.stage is Stage.CORRECTNESS
    assert words in outcome.reason
    assert isinstance(trial(fault, replace(Defences(), **{defence: False})), Measured)


def test_everything_is_on_and_nothing_outside_reaches_it() -> None:
    assert all(getattr(Defences(), f.name) is True for f in fields(Defences))
    names = {f.name for f in fields(Defences)}
    assert not names & set(Settings.model_fields)
    assert not any("defence" in name for name in (*Settings.model_fields, *Job.model_fields))


@pytest.mark.parametrize(
    ("source", "tolerances", "words"),
    [
        ("2.0 * inputs['x']", {"rtol": 0, "atol": 1000}, "zeros"),
        ("2.0 * inputs['x'] + 1e4", {"rtol": 0.01, "atol": 0}, "a constant"),
        ("1e3 * (-1) ** np.arange(dims['n']) + inputs['x']", {"rtol": 0.1, "atol": 0}, "other inputs"),
        ("inputs['x'] * 1.0001", {"rtol": 0.01, "atol": 0}, "copied"),
    ],
)  # fmt: skip
def test_a_job_that_a_trivial_answer_would_pass_is_refused(
    source: str, tolerances: dict[str, float], words: str
) -> None:
    job = scale_job(tolerances={"y": tolerances})
    ports, _ = fake_ports(steady)

    def answer(plan: WorkloadPlan, dims: Mapping[str, int]) -> Array:
        names = {"np": np, "inputs": _wide(draw_inputs(plan)), "dims": dims}
        return np.asarray(eval(source, names))

    wrong = replace(ports, reference=Answering(answer))
    refused = measure_baseline(DeviceSession(job, wrong)).refused
    assert "untestable" in refused
    assert words in refused
    off = replace(wrong, defences=replace(Defences(), task_gate=False))
    assert "untestable" not in measure_baseline(DeviceSession(job, off)).refused


def _wide(drawn: Mapping[str, Array]) -> dict[str, NDArray[np.float64]]:
    return {name: value.astype(np.float64) for name, value in drawn.items()}


@dataclass
class Answering(FakeReference):
    """A reference that says what it is told to."""

    answer: Callable[[WorkloadPlan, Mapping[str, int]], Array]

    def numpy(
        self, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        return {"y": self.answer(plan, dims)}


def zeros_at_1001(plan: WorkloadPlan, dims: Mapping[str, int]) -> Array:
    """Nothing is asked for on the second workload."""
    return 2.0 * _wide(draw_inputs(plan))["x"] * (dims["n"] != 1001)


def copied(plan: WorkloadPlan, dims: Mapping[str, int]) -> Array:
    """What a kernel that copies must write."""
    return _wide(draw_inputs(plan))["x"]


def test_what_was_measured_before_the_kernel_was_refused_is_kept() -> None:
    ports, _ = fake_ports(steady)
    ports = replace(ports, reference=Answering(zeros_at_1001))
    result = measure_baseline(DeviceSession(JOB, ports))
    assert result.refused.startswith("n=1001: untestable: zeros")
    assert [t.workload for t in result.timings] == ["n=4096"]
    assert result.timings[0].cold is not None


def test_one_element_is_its_own_mean_and_no_trivial_answer() -> None:
    ports, _ = fake_ports(steady)
    one = scale_job(workloads=[{"dimensions": {"n": 1}}])
    assert measure_baseline(DeviceSession(one, ports)).refused == ""


def test_a_kernel_that_copies_is_no_trivial_answer() -> None:
    ports, _ = fake_ports(steady)
    refused = measure_baseline(DeviceSession(JOB, replace(ports, reference=Answering(copied)))).refused
    assert "untestable" not in refused
    assert "y is wrong" in refused  # the fake device doubles


CEILINGS = Ceilings(cold_bytes_per_s=1e12, hot_bytes_per_s=4e12, flops_per_s=1e13, launch_us=1.0)


def _plan(n: int, role: Role = Role.OUTPUT) -> WorkloadPlan:
    x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (n,), None)
    return WorkloadPlan("w", (x, BufferPlan("y", Dtype.FLOAT32, role, (n,), None)), 1)


def test_the_floor_counts_bytes_operations_or_the_launch() -> None:
    cold = floor_of(_plan(10**7), CEILINGS, CacheState.COLD)
    assert cold.bound == "bytes"
    assert cold.us == pytest.approx(80.0)
    assert cold.least_us == pytest.approx(5.0)
    assert floor_of(_plan(10**7), CEILINGS, CacheState.HOT).us == pytest.approx(20.0)
    assert floor_of(_plan(10**7, Role.INOUT), CEILINGS, CacheState.COLD).us == pytest.approx(120.0)
    tiny = floor_of(_plan(16), CEILINGS, CacheState.COLD)
    assert (tiny.bound, tiny.us, tiny.least_us) == ("launch", 1.0, 0.5)
    assert floor_of(_plan(16), CEILINGS, CacheState.COLD, shares_host=True).least_us == pytest.approx(0.2)
    heavy = floor_of(_plan(16), CEILINGS, CacheState.COLD, operations=1e9)
    assert (heavy.bound, heavy.least_us) == ("flops", 0.5)
    assert heavy.us == pytest.approx(100.0)
    some = floor_of(_plan(10**7, Role.INOUT), CEILINGS, CacheState.COLD, moved=10**7)
    assert some.bound == "bytes"
    assert [some.us, some.least_us] == pytest.approx([10.0, 1.25])
    many = floor_of(_plan(10**7), CEILINGS, CacheState.COLD, moved=10**8)
    assert [many.us, many.least_us] == pytest.approx([100.0, cold.least_us])
    assert below_floor(tiny, 0.5) == ""
    assert "takes 0.5 us at least" in below_floor(tiny, 0.49)


def test_a_time_below_the_floor_is_refused() -> None:
    ports, _ = fake_ports(steady)
    baseline = measure_baseline(DeviceSession(JOB, ports)).model_copy(
        update={"ceilings": CEILINGS.model_copy(update={"launch_us": 1000.0})}
    )
    kernel = JOB.space.defaults
    for on, kind in ((Defences(), Rejected), (replace(Defences(), floor=False), Measured)):
        session = DeviceSession(JOB, replace(ports, defences=on))
        session.baseline.learn(baseline)
        configured = session.inputs.user_template.configured(kernel)
        times = {t.workload: 100.0 for t in baseline.timings}
        outcome = run_trial(
            session, session.inputs.user_template, configured, session.compile(configured), times
        )
        assert isinstance(outcome, kind)
        assert not isinstance(outcome, Rejected) or outcome.stage is Stage.FLOOR


def test_trials_timed_while_the_device_drifts_are_marked_and_corrected() -> None:
    now = {"us": 100.0}
    ports, _ = fake_ports(lambda c, w: now["us"])
    session = DeviceSession(JOB, ports)
    kernel = session.inputs.user_template.configured(JOB.space.defaults)
    times = {w.key: 100.0 for w in JOB.workloads}

    def one(watch: DriftWatch) -> Measured:
        outcome = corrected(
            JOB,
            run_trial(session, session.inputs.user_template, kernel, session.compile(kernel), times),
            watch.drifts(),
        )
        assert isinstance(outcome, Measured)
        return outcome

    watch = DriftWatch(session, times)
    watch.prepare()
    assert one(watch).drift == 1.0
    now["us"] = 150.0
    watch._due_at = 0.0
    slowed = one(watch)
    assert slowed.drift == pytest.approx(1.5, rel=0.01)
    assert slowed.objective == pytest.approx(1.0, rel=0.01)
    as_timed = run_trial(session, session.inputs.user_template, kernel, session.compile(kernel), times)
    assert isinstance(as_timed, Measured)
    assert as_timed.objective == pytest.approx(1.5, rel=0.01)


@pytest.mark.parametrize(("us", "timings"), [(100.5, 0), (90.0, 16)])
def test_a_first_trial_is_confirmed_only_if_it_beats_the_users_kernel(us: float, timings: int) -> None:
    asked: list[str] = []

    def model(configuration: Configuration, workload: str) -> float:
        asked.append(workload)
        return us if configuration.get("PER") == 4 else 100.0

    ports, _ = fake_ports(model)
    session = DeviceSession(JOB, ports)
    own = session.inputs.user_template
    times = {w.key: 100.0 for w in JOB.workloads}
    kernel = own.configured(JOB.space.defaults | {"PER": 4})
    compiled = session.compile(kernel)
    outcome = run_trial(session, own, kernel, compiled, times)
    watch = DriftWatch(session, times)
    watch.prepare()
    asked.clear()
    watch.confirmed(outcome, kernel, compiled)
    assert len(asked) == timings


@pytest.mark.parametrize(("between_s", "timings"), [(1000.0, 16), (1.0, 8)])
def test_confirmations_leave_the_wall_time_to_trials(
    between_s: float, timings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy host a timing takes seconds, however short its launches."""
    clock = {"s": 0.0}
    asked: list[str] = []

    def slow_host(configuration: Configuration, workload: str) -> float:
        clock["s"] += 1.0
        asked.append(workload)
        return 100.0 / int(configuration.get("PER", 1))

    monkeypatch.setattr(drift, "time", SimpleNamespace(monotonic=lambda: clock["s"]))
    ports, _ = fake_ports(slow_host)
    session = DeviceSession(JOB, ports)
    own = session.inputs.user_template
    times = {w.key: 100.0 for w in JOB.workloads}
    kernel = own.configured(JOB.space.defaults | {"PER": 4})
    compiled = session.compile(kernel)
    outcome = run_trial(session, own, kernel, compiled, times)
    assert isinstance(outcome, Measured)
    watch = DriftWatch(session, times)
    watch.prepare()
    for _ in range(2):
        clock["s"] += between_s
        asked.clear()
        found = watch.confirmed(outcome, kernel, compiled)
        assert isinstance(found, Measured)
        assert found.objective == pytest.approx(0.25)
    assert [asked.count(w.key) for w in JOB.workloads] == [timings / 2] * 2


@pytest.mark.parametrize("family", [f for f in Family if f is not Family.EDGE_CASE])
@pytest.mark.parametrize(
    ("dtype", "draw"),
    [
        (Dtype.FLOAT32, None),
        (Dtype.FLOAT16, Draw(distribution=Distribution.UNIFORM, low=2.0, high=9.0)),
        (Dtype.INT32, Draw(distribution=Distribution.INTEGERS, low=3, high=50)),
        (Dtype.BFLOAT16, Draw(distribution=Distribution.CONSTANT, low=0.5)),
    ],
)
def test_a_family_stays_in_what_the_argument_promises(
    family: Family, dtype: Dtype, draw: Draw | None
) -> None:
    buffer = BufferPlan("x", dtype, Role.INPUT, (5000,), draw)
    own = draw_buffer(buffer, 3)
    values = draw_buffer(buffer, 3, family=family)
    assert values.dtype == own.dtype
    assert values.shape == own.shape
    assert np.isfinite(values.astype(np.float64)).all()
    if draw is not None:
        wide = values.astype(np.float64)
        assert wide.min() >= draw.low
        assert wide.max() <= (draw.low if draw.distribution is Distribution.CONSTANT else draw.high)
        return
    wide = np.abs(values.astype(np.float64))
    assert np.array_equal(values, own) is (family is Family.DECLARED)
    match family:
        case Family.ZEROS:
            assert not wide.any()
        case Family.SPIKE | Family.SPARSE:
            assert 1 <= np.count_nonzero(wide) < 1000
        case Family.SORTED:
            assert bool(np.all(np.diff(values) >= 0))
        case Family.REPEATED:
            assert np.unique(values).size <= 3
        case Family.SCALED_UP | Family.SCALED_DOWN:
            ratio = wide.max() / np.abs(own).max()
            assert ratio > 4 or ratio < 0.25


@pytest.mark.parametrize("shape", [(64, 64), (3, 48, 96), (2, 40, 8)])
def test_sparse_matrices_are_nearly_reducible(shape: tuple[int, ...]) -> None:
    """Without what joins them, some rows have one element alone, in a column of its own."""
    for seed in range(8):
        buffer = BufferPlan(
            "x", Dtype.FLOAT32, Role.INPUT, shape, Draw(distribution=Distribution.UNIFORM, low=0)
        )
        drawn, own = (
            draw_buffer(buffer, seed, family=f).reshape(shape) for f in (Family.SPARSE, Family.DECLARED)
        )
        joins = (drawn != 0) & (drawn != own)
        assert joins.any()
        assert joins.sum(axis=-1).max() == 1
        assert (drawn[joins] <= own[joins] / 16).all()
        for kept in ((drawn != 0) & ~joins).reshape(-1, *shape[-2:]):
            alone = kept[kept.sum(axis=1) == 1]
            shared = max(1, shape[-2] // shape[-1])
            assert (kept.sum(axis=0)[alone.argmax(axis=1)] <= shared).sum() > shape[-2] / 8
    whole = BufferPlan(
        "x", Dtype.INT32, Role.INPUT, (64, 64), Draw(distribution=Distribution.INTEGERS, low=0, high=9)
    )
    own, drawn = draw_buffer(whole, 3), draw_buffer(whole, 3, family=Family.SPARSE)
    assert ((drawn == own) | (drawn == 0)).all()


def test_neighbours_are_few_and_near() -> None:
    job = scale_job(workloads=[{"dimensions": {"n": 128}}])
    assert {w.dimensions["n"] for w in neighbours(job, job.workloads[0])} == {129, 127, 97, 7, 1}
    wide = Workload(dimensions={"a": 64, "b": 64, "c": 64})
    found = neighbours(job, wide)
    assert len(found) == MAX_NEIGHBOURS
    assert [sum(w.dimensions[k] != 64 for k in "abc") for w in found] == [3, *[1] * (MAX_NEIGHBOURS - 1)]


def test_the_error_budget_is_twice_the_baselines_and_two_units() -> None:
    def over(got: np.ndarray, baseline_error: float, dtype: Dtype = Dtype.FLOAT32) -> int:
        return compare(got, want, LOOSE, ErrorBudget(baseline_error, dtype)).over_budget

    want = np.linspace(1.0, 2.0, 4096)
    exact = want.astype(np.float32)
    assert over(exact, 0.0) == 0
    coarse = want.astype(np.float16).astype(np.float32)
    assert over(coarse, 1e-6) > 3000
    assert over(coarse, 0.02) == 0
    assert over(coarse.astype(np.float16), 0.0, Dtype.FLOAT16) == 0
    nan = np.array([np.nan, 1.0], np.float32)
    budget = ErrorBudget(0.0, Dtype.FLOAT32)
    assert compare(nan, np.array([np.nan, 1.0]), LOOSE, budget).over_budget == 0


@pytest.mark.parametrize(
    ("steady", "own", "error", "refused"),
    [
        (True, False, 0.0, False),
        (True, False, 1e-6, True),
        (True, True, 1e-6, False),
        (True, True, 1.0, True),
        (False, False, 1e-6, False),
        (False, False, 0.005, True),
        (False, False, 1.0, True),
    ],
)
def test_a_second_launch_is_equal_or_where_the_users_is_not_as_right(
    steady: bool, own: bool, error: float, refused: bool
) -> None:
    job = scale_job(workloads=[{"dimensions": {"n": 4096}}], tolerances={"y": {"rtol": 0.0, "atol": 0.01}})
    plan = DeviceSession(job, fake_ports(lambda c, w: 1.0)[0]).inputs.plan(job.workloads[0])
    want = np.linspace(1.0, 2.0, 4096)
    first = want.astype(np.float32)
    again = (want + error).astype(np.float32)
    report = RunReport({"y": first}, (), (), repeated={"y": again})
    known = CheckedCase(dimensions={"n": 4096}, max_error=1e-3, elements=4096)
    names = None if own else frozenset[str]()
    rules = CheckRules(job, own_globals=names, is_steady=steady)
    found = check_run(CheckedRun(rules, plan, report, {"y": want}, None, None if own else known))
    assert isinstance(found, Rejected) is refused
    if isinstance(found, Rejected):
        assert "two launches" in found.reason


def test_a_kernel_is_not_refused_for_the_luck_of_its_draws() -> None:
    """The user's own kernel, sums in order, on other inputs; then with more error in a few elements."""
    rng = np.random.default_rng(0)
    tolerance = Tolerance(atol=2e-3, rtol=1e-4)
    sums = []
    for _ in range(40):
        x = rng.standard_normal((2000, 1199), dtype=np.float32)
        sums.append((np.add.accumulate(x, axis=0)[-1], x.sum(axis=0, dtype=np.float64)))
    errors = [compare(got, want, tolerance).max_error for got, want in sums]
    assert max(errors) > 2.0 * min(errors), "luck would refuse it"
    for own in errors:
        budget = ErrorBudget(own, Dtype.FLOAT32)
        assert not any(compare(got, want, tolerance, budget).over_budget for got, want in sums)
    got, want = sums[0]
    budget = ErrorBudget(errors[0], Dtype.FLOAT32)
    scale = tolerance.atol + tolerance.rtol * np.abs(want)
    for elements, share, refused in ((STRAYS, 2.5, False), (STRAYS + 1, 2.5, True), (1, 5.0, True)):
        worse = got.copy()
        worse[:elements] = (want + share * errors[0] * scale)[:elements]
        assert bool(compare(worse, want, tolerance, budget).over_budget) is refused


def test_elements_that_cancel_are_judged_by_the_typical_size() -> None:
    """A sum in another order differs by its terms' last places, however small the sum is."""
    want = np.where(np.arange(4096) % 2, 1.0, 1e-9)
    got = (want + 1e-7).astype(np.float32)
    assert compare(got, want, LOOSE, ErrorBudget(0.0, Dtype.FLOAT32)).over_budget == 0
    assert compare(got[::2], want[::2], LOOSE, ErrorBudget(0.0, Dtype.FLOAT32)).over_budget == 2048


@pytest.mark.parametrize(
    ("source", "symbols", "own", "refused"),
    [
        ("__device__ int calls;", ("calls",), (), True),
        ("__device__ int calls;", ("calls",), ("calls",), False),
        ("__device__ const float table[2] = {1, 2};", ("table",), (), False),
        ("static __device__ constexpr float table[2]{1, 2};", ("_ZL5table",), (), False),
        ('void f() { printf("hello"); }', ("$str", "$str$1", "__unnamed_1"), (), False),
        ("__device__ int __unnamed_1;", ("__unnamed_1",), (), True),
        ("// const calls = 1\n__device__ int calls = 2;", ("calls",), (), True),
        ("__device__ float cache[64]; const int calls = 1;", ("cache",), (), True),
        ("namespace { __device__ int calls; } const int calls = 1;", ("_ZN1a5callsE",), (), True),
        ("void f(const float* x) { } __device__ int calls = 0;", ("calls",), (), True),
    ],
)
def test_device_variables_are_refused_unless_constant_or_the_users(
    source: str, symbols: tuple[str, ...], own: tuple[str, ...], refused: bool
) -> None:
    kernel = JOB.kernel.model_copy(update={"source": source})
    configured = DeviceSession(JOB, fake_ports(steady)[0]).inputs.user_template.configured(JOB.space.defaults)
    configured = configured.model_copy(update={"kernel": kernel})
    compiled = Compiled(b"", "f", CompileFacts(), globals=symbols)
    assert (undeclared_globals(configured, compiled, frozenset(own)) is not None) is refused


@pytest.mark.parametrize(
    ("words", "own", "refused"),
    [
        ((), (), False),
        (("__LINE__",), (), True),
        (("__LINE__",), ("__LINE__", "__FILE__"), False),
        (("__LINE__", "__DATE__"), ("__LINE__",), True),
    ],
)
def test_a_candidate_tells_no_more_than_the_users_kernel(
    words: tuple[str, ...], own: tuple[str, ...], refused: bool
) -> None:
    found = undeclared_words(Compiled(b"", "f", CompileFacts(), telling=words), frozenset(own))
    assert (found is not None) is refused
    assert found is None or words[-1] in found.reason
