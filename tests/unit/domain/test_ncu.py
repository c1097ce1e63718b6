"""Nsight Compute's CSV. The logs here were written by hand after its documented raw page, by no run."""

from dataclasses import replace

import pytest

from testbed.fakes import fake_ports
from testbed.job_in_memory import Rows
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.job import Budget
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.domain.templates.outcome import TimeSummary, WorkloadTiming
from warpsmith.domain.templates.space import Constraint
from warpsmith.errors import Unavailable
from warpsmith.measure.ncu import COUNTERS, options, parse
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.snapshot import TaskView
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import BaselineResult, Counters, ProfilePayload, ProfileResult, StepPayload
from warpsmith.tuning.timing.hardware_counters import counters_of

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name",'
    '"Context","Stream","Block Size","Grid Size","CC"'
)
ROW = '"0","4242","python3.11","127.0.0.1","silu_and_mul","1","7","(256, 1, 1)","(16, 1, 1)","9.0"'
METRICS = (
    '"dram__bytes.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed","lts__t_sector_hit_rate.pct",'
    '"sm__warps_active.avg.pct_of_peak_sustained_active","smsp__issue_active.avg.pct_of_peak_sustained_active"'
)
LOG = f"""==PROF== Connected to process 4242 (/usr/bin/python3.11)
==PROF== Profiling "silu_and_mul" - 0: 0%....50%....100% - 2 passes
==PROF== Disconnected from process 4242
{HEAD},{METRICS}
"","","","","","","","","","","byte","%","%","%","%"
{ROW},"1,179,648","41.27","33.06","n/a","12.5"
"""
NOT_PERMITTED = """==PROF== Connected to process 4242 (/usr/bin/python3.11)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters.
==PROF== Disconnected from process 4242
"""


def test_counters_are_read_by_name_and_what_the_chip_lacks_is_left_out() -> None:
    assert parse(LOG) == {
        "dram_bytes": 1179648.0,
        "dram_percent": 41.27,
        "l2_hit_percent": 33.06,
        "issue_percent": 12.5,
    }


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (NOT_PERMITTED, "ERR_NVGPUCTRPERM"),
        ("", "no kernel was profiled"),
        ("==WARNING== No kernels were profiled.\n", "no kernel was profiled"),
        (LOG.partition(ROW)[0], "no kernel was profiled"),
        ('"Kernel Name\n"x"\n', "no kernel was profiled"),
    ],
)
def test_a_log_without_counters_says_why(log: str, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        parse(log)


def test_only_what_is_needed_is_asked_of_one_launch() -> None:
    given = options("{private}/ncu.csv", "silu_and_mul")
    assert given[given.index("--metrics") + 1].split(",") == list(COUNTERS)
    assert given[given.index("--kernel-name") + 1] == "silu_and_mul"
    assert given[given.index("--launch-count") + 1] == "1"
    assert given[given.index("--clock-control") + 1] == "none"


class Counting:
    """A profiler that counts, or may not."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.asked: list[str] = []

    def counters(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> dict[str, float]:
        self.asked.append(plan.workload)
        if self.refusal:
            raise Unavailable(self.refusal)
        return {"dram_percent": 41.0}


def session_with(counting: Counting | None) -> DeviceSession:
    job = scale_job(workloads=[{"dimensions": {"n": 64}}, {"dimensions": {"n": 4096}, "weight": 3}])
    ports, opener = fake_ports(lambda c, w: 1.0)
    return DeviceSession(job, SessionPorts(opener, ports.compiler, ports.reference, counters=counting))


def test_the_heaviest_workload_is_profiled_where_that_is_possible() -> None:
    counting = Counting()
    made = session_with(counting)
    key = made.inputs.user_template.configured(made.job.space.defaults).key
    assert counters_of(made) == Counters(kernel=key, values={"dram_percent": 41.0})
    assert counting.asked == ["n=4096"]
    one = TimeSummary(median_us=1, low_us=1, high_us=1, samples=1, launches_per_sample=1)
    times = [WorkloadTiming(workload=n, cold=one.scaled(t)) for n, t in (("n=64", 7), ("n=4096", 2))]
    counters_of(made, timings=times)
    assert counting.asked.pop() == "n=64", "by time x weight"
    assert counters_of(session_with(None)) == Counters()
    refused = counters_of(session_with(Counting("ncu: not\n permitted")))
    assert refused == Counters(kernel=key, missing="no hardware counters: ncu: not permitted")


def test_a_configuration_is_profiled_where_its_constraints_allow_it() -> None:
    counting = Counting()
    made = session_with(counting)
    small = made.job.space.model_copy(update={"constraints": (Constraint(expression=Expression("n < 100")),)})
    template = made.inputs.user_template.model_copy(update={"space": small})
    found = counters_of(made, template, {"BLOCK": 256, "PER": 2})
    assert counting.asked == ["n=64"]
    assert found.kernel == template.configured({"PER": 2, "BLOCK": 256}).key
    assert found.kernel != template.configured({"BLOCK": 256, "PER": 1}).key


def profiled(result: BaselineResult, second: float = 0.5) -> list[StepPayload | ProfilePayload]:
    """Questions to profilers of both kinds, of a job of two rounds whose baseline has this result.

    Args:
        second: objective of the second candidate; that of the first is 0.5.
    """
    rows = Rows(
        Budget(rounds=2, trials=20),
        baseline=lambda rows, payload: result,
        objective=lambda c: second if c.number else 0.5,
    )
    end = rows.run()
    assert end.state is JobState.DONE
    return [
        t.payload
        for t in end.tasks
        if isinstance(t.payload, ProfilePayload)
        or (isinstance(t.payload, StepPayload) and t.payload.role == "profiler")
    ]


COUNTED = BaselineResult(device=DEVICE, counters=Counters(values={"dram_percent": 41.0}))


def test_the_parent_of_a_round_and_the_winner_are_profiled() -> None:
    asked = profiled(COUNTED, second=0.4)
    profiler = [p.parent for p in asked if isinstance(p, StepPayload)]
    assert profiler == [None, "c0"]
    assert (asked[1], asked[3]) == (ProfilePayload(candidate="c0"), ProfilePayload(candidate="c1"))
    assert len(profiled(COUNTED, second=0.6)) == 3, "the winner was profiled as a parent"


@pytest.mark.parametrize(
    "result",
    [
        BaselineResult(device=DEVICE),
        BaselineResult(device=DEVICE, counters=Counters(missing="not permitted")),
    ],
    ids=["not asked for", "not permitted"],
)
def test_nothing_is_profiled_where_that_does_not_work(result: BaselineResult) -> None:
    assert [type(p) for p in profiled(result)] == [StepPayload, StepPayload]


def test_nothing_is_profiled_again_after_a_profile_that_brought_nothing() -> None:
    refused = ProfileResult(counters=Counters(missing="timeout"))
    rows = Rows(
        Budget(rounds=3, trials=30), baseline=lambda rows, payload: COUNTED, profile=lambda r, p: refused
    )
    assert rows.run().state is JobState.DONE
    assert rows.kinds.count("profile") == 1


def test_a_profile_that_was_given_up_ends_no_job() -> None:
    rows = Rows(Budget(rounds=2, trials=20), baseline=lambda rows, payload: COUNTED)
    while not profiles_of(rows):
        for action in decide(rows.snapshot):
            rows.apply(action)
    *before, last = rows.snapshot.tasks
    dead = replace(last, state=TaskState.DEAD, result=None, error="3 attempts")
    rows.snapshot = replace(rows.snapshot, tasks=(*before, dead))
    end = rows.run()
    assert end.state is JobState.DONE
    assert len(end.candidates) == 2
    assert len(profiles_of(rows)) == 1


def profiles_of(rows: Rows) -> list[TaskView]:
    """Tasks that profile a candidate."""
    return [t for t in rows.snapshot.tasks if t.kind is TaskKind.PROFILE]
