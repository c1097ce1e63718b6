"""What is likely to be asked for is compiled while compilers are idle, and the search hears of it."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

import pytest

from testbed.fakes import ListSink, fake_ports
from tests.unit.tuning.test_tuning_loops import Listed, all_configurations, times
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts, Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.ports import CompileForecast, Searcher
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.trials.pipeline import TrialPipeline
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice
from warpsmith.tuning.trials.speculative_compiler import MOST_KEPT, SpeculativeCompiler

JOB = scale_job()
CUDA = DEVICE.model_copy(update={"architecture": "sm_90", "shares_host": False})
REPORT = CompileFacts(registers=128, spill_bytes=8, static_shared_bytes=0)


class Slow:
    """A compiler that is ready when it is told so."""

    def __init__(self) -> None:
        self.begun: dict[str, Future[Compiled | Rejected]] = {}

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        key = configuration_key(kernel.configuration)
        assert key not in self.begun, "compiled twice"
        self.begun[key] = Future()
        return self.begun[key]

    def ready(self, rejected: Callable[[str], bool] = lambda key: False) -> None:
        for key, future in self.begun.items():
            if not future.done():
                bad = Rejected(stage=Stage.COMPILE, reason="error: no")
                future.set_result(bad if rejected(key) else Compiled(key.encode(), "scale", REPORT))


class Knowing(Listed):
    """Says that it will ask for what is left, in order, and remembers what it learns."""

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        super().__init__(configurations)
        self.learnt: dict[str, tuple[float | None, bool]] = {}
        self.excluded: list[str] = []

    @property
    def forecast(self) -> CompileForecast:
        return self

    def likely(self, count: int, after: Sequence[Configuration] = ()) -> Sequence[Configuration]:
        unknown = [c for c in self.left if configuration_key(c) not in self.learnt and c not in after]
        return unknown[:count]

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        self.learnt[configuration_key(configuration)] = (occupancy, spills)

    def exclude(self, configuration: Configuration) -> None:
        self.excluded.append(configuration_key(configuration))
        self.left = [c for c in self.left if c != configuration]


def speculative(searcher: Searcher) -> tuple[SpeculativeCompiler, Slow]:
    ports, opener = fake_ports(times)
    compiler = Slow()
    session = DeviceSession(JOB, replace(ports, opener=replace(opener, info=CUDA), compiler=compiler))
    return SpeculativeCompiler(session, session.inputs.user_template, searcher), compiler


def keys(configurations: Sequence[Configuration]) -> list[str]:
    return [configuration_key(c) for c in configurations]


def test_idle_compilers_get_what_is_likely_and_no_more() -> None:
    every = all_configurations()
    made, compiler = speculative(Knowing(every))
    made.top_up(3)
    assert list(compiler.begun) == keys(every[:3])
    made.top_up(3)
    assert len(compiler.begun) == 3, "these compilers are busy"
    made.top_up(-1)
    compiler.ready()
    made.top_up(2)
    assert list(compiler.begun) == keys(every[:5])


def test_what_was_compiled_early_is_not_compiled_again() -> None:
    every = all_configurations()
    made, compiler = speculative(Knowing(every))
    made.top_up(2)
    assert made.compile(every[1]).compiled is compiler.begun[configuration_key(every[1])]
    other = made.compile(every[5])
    assert configuration_key(other.kernel.configuration) == configuration_key(every[5])
    assert len(compiler.begun) == 3


def test_reports_are_told_of_early_ones_and_of_those_that_were_asked_for() -> None:
    every = all_configurations()
    searcher = Knowing(every)
    made, compiler = speculative(searcher)
    made.top_up(1)
    made.compile(every[4])
    compiler.ready()
    made.top_up(0)
    assert set(searcher.learnt) == {*keys(every[:1]), *keys(every[4:5])}
    for key, (occupancy, spills) in searcher.learnt.items():
        block = next(c["BLOCK"] for c in every if configuration_key(c) == key)
        # 128 registers leave room for 512 threads of the 2,048; a block has no part of a warp.
        assert occupancy == pytest.approx(512 / 2048), block
        assert spills


def test_what_does_not_compile_is_never_asked_for_unless_it_was_already() -> None:
    every = all_configurations()
    searcher = Knowing(every)
    made, compiler = speculative(searcher)
    made.top_up(2)
    made.compile(every[7])
    compiler.ready(lambda key: True)
    made.top_up(0)
    assert searcher.excluded == keys(every[:2]), "the trial of the third says so itself"
    assert (searcher.learnt, searcher.told) == ({}, {})


def test_what_no_multiprocessor_holds_is_never_asked_for() -> None:
    every = all_configurations()
    searcher = Knowing(every)
    made, compiler = speculative(searcher)
    made.top_up(2)
    large = REPORT.model_copy(update={"static_shared_bytes": 245_760})
    for place, report in enumerate((large, REPORT)):
        compiler.begun[configuration_key(every[place])].set_result(Compiled(b"", "scale", report))
    made.top_up(0)
    assert (searcher.excluded, list(searcher.learnt)) == (keys(every[:1]), keys(every[1:2]))


def test_a_compiler_that_failed_is_asked_again() -> None:
    every = all_configurations()
    searcher = Knowing(every)
    made, compiler = speculative(searcher)
    made.top_up(2)
    first, second = compiler.begun.values()
    first.set_exception(RuntimeError("no compiler"))
    second.cancel()
    made.top_up(0)
    compiler.begun.clear()
    made.compile(every[0])
    made.compile(every[1])
    assert list(compiler.begun) == keys(every[:2])
    assert searcher.excluded == []


def test_other_searchers_have_nothing_compiled_early() -> None:
    every = all_configurations()
    searcher = Listed(every)
    assert searcher.forecast is None
    made, compiler = speculative(searcher)
    made.top_up(5)
    made.compile(every[0])
    assert list(compiler.begun) == keys(every[:1])


def test_binaries_that_nobody_asks_for_are_dropped() -> None:
    every: list[Configuration] = [{"BLOCK": 32, "PER": n} for n in range(MOST_KEPT + 3)]
    made, _ = speculative(Knowing(every))
    made.top_up(MOST_KEPT + 3)
    with pytest.raises(AssertionError, match="compiled twice"):
        made.compile(every[2])
    made.compile(every[3])


def test_a_search_runs_what_compiles_and_records_nothing_else() -> None:
    def fault(configuration: Configuration) -> str:
        return "compile" if configuration.get("PER") == 8 else ""

    ports, opener = fake_ports(times, fault)
    ports = replace(ports, opener=replace(opener, info=CUDA))
    healthy, _ = fake_ports(times)
    baseline = measure_baseline(DeviceSession(JOB, healthy))
    sink, searcher = ListSink(), Knowing(all_configurations())
    session = DeviceSession(JOB, ports)
    limits = SliceLimits(seconds=30, trials=100, compile_ahead=8)
    run_slice(session, session.inputs.user_template, baseline, searcher, sink, limits, SliceStart(gate=False))
    session.close()
    measured = [c for c, o in sink.trials if isinstance(o, Measured)]
    assert sorted(keys(measured)) == sorted(keys([c for c in all_configurations() if c["PER"] != 8]))
    rejected = [k for k, v in searcher.told.items() if v is None]
    assert len(rejected) + len(searcher.excluded) == 4
    assert len(sink.trials) < len(all_configurations()), "some were known not to compile before they ran"


def test_what_follows_the_first_trial_compiles_beside_it() -> None:
    ports, opener = fake_ports(times)
    compiler, every = ports.compiler, all_configurations()
    begun: list[str] = []

    class Counting:
        def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
            if kernel.configuration:
                begun.append(configuration_key(kernel.configuration))
            return compiler.submit(kernel, device)

    class Begun(ListSink):
        def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
            before.append(list(begun))
            super().finished(configuration, outcome, seconds)

    before: list[list[str]] = []
    baseline = measure_baseline(DeviceSession(JOB, fake_ports(times)[0]))
    ports = replace(ports, opener=replace(opener, info=CUDA), compiler=Counting())
    session = DeviceSession(JOB, ports)
    limits = SliceLimits(seconds=30, trials=3, compile_ahead=8)
    run_slice(session, session.inputs.user_template, baseline, Knowing(every), Begun(), limits)
    session.close()
    assert before[0] == keys([JOB.space.defaults, *every[:3]]), (
        "half of those that may wait, at the first result"
    )


def test_the_first_binary_that_is_ready_runs_whatever_else_compiles() -> None:
    ports, opener = fake_ports(times)
    compiler = Slow()
    session = DeviceSession(JOB, replace(ports, opener=replace(opener, info=CUDA), compiler=compiler))
    every = all_configurations()
    limits = SliceLimits(seconds=30, trials=100, compile_ahead=4)
    pipeline = TrialPipeline(session, session.inputs.user_template, Listed(every), ListSink(), limits, [])
    assert pipeline.next(100, waits=False) is None and not pipeline.is_empty, "none is ready"
    for place in (2, 1):
        future = compiler.begun[configuration_key(every[place])]
        threading.Timer(0.02, future.set_result, [Compiled(b"", "scale", REPORT)]).start()
        ready = pipeline.next(100)
        assert ready is not None and ready.configuration == every[place]
