"""Baseline, slice and winners over a fake device whose times are known exactly."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from testbed.fakes import FakeOpener, Fault, ListSink, fake_ports
from warpsmith.domain.state import SliceEnd
from warpsmith.domain.templates.outcome import Measured, Rejected, Stage, Verdict
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.errors import DeviceSick
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.ports import Searcher
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import SliceResult
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

JOB = scale_job()
LIMITS = SliceLimits(seconds=30, trials=100, compile_ahead=3)


def times(configuration: Configuration, workload: str) -> float:
    """Bigger blocks are faster on the large workload, slower on the small one."""
    block, per = int(configuration["BLOCK"]), int(configuration["PER"])
    return 1000.0 / block + per if workload == "n=4096" else block / 10.0 + per


class Listed(Searcher):
    """Proposes a fixed list."""

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self.left = list(configurations)
        self.told: dict[str, float | None] = {}

    def ask(self, count: int) -> Sequence[Configuration]:
        out, self.left = self.left[:count], self.left[count:]
        return out

    def tell(self, configuration: Configuration, value: float | None) -> None:
        self.told[configuration_key(configuration)] = value


def all_configurations() -> list[Configuration]:
    default = JOB.space.defaults
    every = product((32, 64, 128, 256), (1, 2, 4, 8))
    found: list[Configuration] = [{"BLOCK": b, "PER": p} for b, p in every]
    return [c for c in found if c != default]


def test_baseline_times_every_workload_cold_and_hot() -> None:
    ports, _ = fake_ports(times)
    session = DeviceSession(JOB, ports)
    result = measure_baseline(session)
    assert result.refused == ""
    assert [t.workload for t in result.timings] == ["n=4096", "n=1001"]
    assert all(t.cold is not None and t.hot is not None for t in result.timings)
    assert result.timings[0].cold is not None
    assert result.timings[0].cold.median_us == pytest.approx(1000 / 64 + 1, rel=0.02)
    assert result.aa_width < 0.01


@pytest.mark.parametrize(
    ("fault", "words"),
    [("compile", "does not compile"), ("wrong", "is wrong"), ("timeout", "ended its process")],
)
def test_a_bad_kernel_is_refused_with_the_reason(fault: str, words: str) -> None:
    ports, _ = fake_ports(times, lambda c: fault)
    assert words in measure_baseline(DeviceSession(JOB, ports)).refused


def test_a_job_that_zeros_would_pass_is_untestable() -> None:
    job = scale_job(tolerances={"y": {"rtol": 0, "atol": 1000}})
    ports, _ = fake_ports(times)
    assert "untestable" in measure_baseline(DeviceSession(job, ports)).refused


def search(
    fault: Fault = lambda c: "",
    sink: ListSink | None = None,
    gate: bool = True,
    limits: SliceLimits = LIMITS,
) -> tuple[SliceResult, ListSink, Listed, FakeOpener]:
    ports, opener = fake_ports(times, fault)
    session = DeviceSession(JOB, ports)
    healthy, _ = fake_ports(times)
    baseline = measure_baseline(DeviceSession(JOB, healthy))
    sink = sink or ListSink()
    searcher = Listed(all_configurations())

    result = run_slice(
        session, session.inputs.user_template, baseline, searcher, sink, limits, SliceStart(gate=gate)
    )
    return result, sink, searcher, opener


def test_a_slice_runs_everything_and_tells_the_searcher() -> None:
    result, sink, searcher, _ = search()
    assert result.ended_by is SliceEnd.EXHAUSTED
    assert result.trials == 16
    assert len({configuration_key(c) for c, _ in sink.trials}) == 16
    assert sorted(map(configuration_key, sink.proposals)) == sorted(
        configuration_key(c) for c, _ in sink.trials
    )
    measured = [o for _, o in sink.trials if isinstance(o, Measured)]
    assert len(measured) == 16
    first = measured[0]
    assert first.objective == pytest.approx(1.0, rel=0.01)
    assert searcher.told.keys() == {configuration_key(c) for c, _ in sink.trials}


def test_a_fault_costs_one_trial_and_a_fresh_child() -> None:
    def fault(configuration: Configuration) -> str:
        return {32: "timeout", 128: "wrong", 256: "guard"}.get(int(configuration["BLOCK"]), "")

    result, sink, searcher, opener = search(fault)
    assert result.trials == 16
    stages = {int(c["BLOCK"]): o.stage for c, o in sink.trials if isinstance(o, Rejected)}
    assert stages == {32: Stage.RUN, 128: Stage.CORRECTNESS, 256: Stage.GUARD}
    assert all(searcher.told[configuration_key(c)] is None for c, o in sink.trials if isinstance(o, Rejected))
    gate, first, died = 1, 1, 4
    # After one that wrote outside its buffers, there is a fresh child for what comes next; after one
    # that died as well, in which the device first shows that it is well. By chance the wrong ones are
    # refused on another draw of a workload, and the user's kernel runs on it once.
    asked = len(opener.opened) - (gate + first + died + 3)
    assert 0 <= asked <= len(JOB.workloads)


def test_a_device_that_does_not_come_up_again_is_no_verdict_on_a_kernel() -> None:
    baseline = measure_baseline(DeviceSession(JOB, fake_ports(times)[0]))
    ports, opener = fake_ports(times, lambda c: "device" if c["BLOCK"] == 32 else "")
    opener.opens = 2
    sink, searcher = ListSink(), Listed([{"BLOCK": 32, "PER": 1}, {"BLOCK": 128, "PER": 1}])
    session = DeviceSession(JOB, ports)
    with pytest.raises(DeviceSick, match="fallen off the bus"):
        run_slice(session, session.inputs.user_template, baseline, searcher, sink, LIMITS)
    assert [c["BLOCK"] for c, o in sink.trials if isinstance(o, Rejected)] in ([32], [])
    assert not any(c["BLOCK"] == 128 for c, _ in sink.trials)


def test_a_kernel_that_writes_outside_its_buffers_costs_no_other_one_its_verdict() -> None:
    def fault(configuration: Configuration) -> str:
        return "spoils" if configuration["BLOCK"] == 64 and configuration["PER"] != 1 else ""

    result, sink, _, _ = search(fault)
    assert result.trials == len(sink.trials) == 16
    rejected = [c for c, o in sink.trials if isinstance(o, Rejected)]
    assert sorted((int(c["BLOCK"]), int(c["PER"])) for c in rejected) == [(64, 2), (64, 4), (64, 8)]


def test_a_template_that_fails_with_its_defaults_is_rejected_at_the_gate() -> None:
    result, sink, _, _ = search(lambda c: "wrong")
    assert result.reason.startswith("correctness: y is wrong")
    assert len(sink.trials) == 1


@pytest.mark.parametrize("trials", [1, 4, 7])
def test_a_slice_keeps_its_trial_budget(trials: int) -> None:
    result, sink, _, _ = search(limits=replace(LIMITS, trials=trials))
    assert result.trials == len(sink.trials) == trials
    assert result.ended_by is SliceEnd.LIMIT


def test_a_lost_lease_ends_the_slice() -> None:
    result, sink, _, _ = search(sink=ListSink(stop_after=5))
    assert len(sink.trials) == 5
    assert result.ended_by is SliceEnd.LIMIT


def finalists() -> tuple[list[Finalist], float]:
    _, sink, _, _ = search()
    ports, _ = fake_ports(times)
    template = DeviceSession(JOB, ports).inputs.user_template
    found = [Finalist("c0", template, c, o) for c, o in sink.trials if isinstance(o, Measured)]
    return found, 0.001


def test_winners_are_chosen_per_workload_and_measured_again() -> None:
    found, noise = finalists()
    ports, opener = fake_ports(times)
    result = verify_winners(JOB, ports, found, ComparisonPlan(6, noises(noise)), lambda: True)
    by_workload = {c.workload: c for c in result.choices}
    assert by_workload["n=4096"].configuration == {"BLOCK": 256, "PER": 1}
    assert by_workload["n=1001"].configuration == {"BLOCK": 32, "PER": 1}
    for comparison in result.comparisons:
        assert comparison.verdict is Verdict.FASTER
        assert comparison.speedup.estimate == pytest.approx(
            comparison.baseline_us / comparison.best_us, rel=0.02
        )
    assert result.speedup > 1.5
    assert all(device.dead for device in opener.opened)


def test_a_winner_that_fails_its_second_check_is_withdrawn() -> None:
    found, noise = finalists()
    ports, _ = fake_ports(times, lambda c: "wrong" if int(c["BLOCK"]) == 256 else "")
    result = verify_winners(JOB, ports, found, ComparisonPlan(6, noises(noise)), lambda: True)
    choice = next(c for c in result.choices if c.workload == "n=4096")
    assert choice.configuration is None or choice.configuration["BLOCK"] != 256
    assert any("correctness" in str(fallen) for fallen in result.withdrawn)


def test_the_baseline_stays_where_nothing_is_faster() -> None:
    found, noise = finalists()
    slower = [f for f in found if f.configuration["BLOCK"] == 64 and f.configuration["PER"] != 1]
    ports, _ = fake_ports(times)
    result = verify_winners(JOB, ports, slower, ComparisonPlan(6, noises(noise)), lambda: True)
    assert [c.candidate for c in result.choices] == [None, None]
    assert result.speedup == 1.0
    assert {c.verdict for c in result.comparisons} == {Verdict.SLOWER}
