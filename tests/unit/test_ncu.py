"""Nsight Compute's CSV. The logs here were written by hand after its documented raw page, by no run."""

import pytest

from tests.fakes import fake_tools
from tests.jobs import scale_job
from warpsmith.domain.plan import Compiled, LaunchSize, WorkloadPlan
from warpsmith.errors import Unavailable
from warpsmith.measure.ncu import COUNTERS, options, parse
from warpsmith.tuning.bench import Bench, Tools
from warpsmith.tuning.counters import counters_of

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
        self.asked.append(plan.key)
        if self.refusal:
            raise Unavailable(self.refusal)
        return {"dram_percent": 41.0}


def bench(counting: Counting | None) -> Bench:
    job = scale_job(workloads=[{"dimensions": {"n": 64}}, {"dimensions": {"n": 4096}, "weight": 3}])
    tools, opener = fake_tools(lambda c, w: 1.0)
    return Bench(job, Tools(opener, tools.compiler, tools.reference, counters=counting))


def test_the_heaviest_workload_is_profiled_where_that_is_possible() -> None:
    counting = Counting()
    assert counters_of(bench(counting)) == {"dram_percent": 41.0}
    assert counting.asked == ["n=4096"]
    assert counters_of(bench(None)) == {}
    assert counters_of(bench(Counting("not permitted"))) == {}
