"""Cheats that only one defence finds, on PoCL: refused with it, measured without it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.trials.first_trial import run_gate, run_trial
from warpsmith.verify.defences import Defences

N = 20_000
HEAD = "__kernel void scale(__global const float* x, __global float* y, const int n) {\n"
LOOP = "for (int i = get_global_id(0); i < n; i += get_global_size(0))"
HONEST = f"{HEAD}  {LOOP} y[i] = 2.0f * x[i];\n}}\n"
LOOSE = {"y": {"rtol": 1e-2, "atol": 1e-2}}
ALL = Defences()
FEW = replace(
    ALL,
    families=False,
    neighbours=False,
    worlds=False,
    between=False,
    determinism=False,
    error_budget=False,
    timed_launches=False,
    outputs_apart=False,
    telling=False,
)
"""Without those of which the tests show one at a time."""

Try = Callable[..., Outcome]


def job_of(**changes: Any) -> Job:
    workloads = [{"dimensions": {"n": N}}]
    return scale_job(workloads=workloads, parameters=[], **_launch(), **changes)


def _job(loose: bool) -> Job:
    return job_of(**({"tolerances": LOOSE} if loose else {}))


def _launch() -> dict[str, Any]:
    # Hot: timed launches come back to the same few buffers within one trial, however slow the machine is.
    objective = {"cache": "hot"}
    kernel = scale_job().kernel.model_dump(mode="json")
    kernel |= {"source": HONEST, "launch": {"grid": ["ceil_div(n, 256)"], "block": [64]}}
    return {"kernel": kernel, "objective": objective}


@pytest.fixture(scope="module")
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


@pytest.fixture(scope="module")
def baselines(ports: SessionPorts) -> dict[str, BaselineResult]:
    """The honest kernel with tight and with loose tolerances."""
    found = {}
    for name, changes in (("tight", {}), ("loose", {"tolerances": LOOSE})):
        session = DeviceSession(job_of(**changes), ports)
        found[name] = measure_baseline(session)
        session.close()
        assert found[name].refused == ""
    return found


@pytest.fixture(scope="module")
def built() -> dict[str, Compiled | Rejected]:
    """Every source is compiled once."""
    return {}


@pytest.fixture(scope="module")
def sessions(
    ports: SessionPorts, baselines: dict[str, BaselineResult]
) -> Iterator[Callable[[Defences, bool], DeviceSession]]:
    """One for each set of defences, as a search has one for all of its trials."""
    made: dict[tuple[Defences, bool], DeviceSession] = {}

    def session(on: Defences, loose: bool) -> DeviceSession:
        if (on, loose) not in made:
            made[on, loose] = DeviceSession(_job(loose), replace(ports, defences=on))
            made[on, loose].baseline.learn(baselines["loose" if loose else "tight"])
        return made[on, loose]

    yield session
    for one in made.values():
        one.close()


@pytest.fixture
def try_candidate(
    sessions: Callable[[Defences, bool], DeviceSession],
    baselines: dict[str, BaselineResult],
    built: dict[str, Compiled | Rejected],
) -> Try:
    """What becomes of a source as the first trial of a template, or as a search trial."""

    def run(source: str, on: Defences = ALL, loose: bool = False, gate: bool = True) -> Outcome:
        job = _job(loose)
        baseline = baselines["loose" if loose else "tight"]
        options = ("-cl-std=CL2.0",) if "OUTLIVES" in source else ()
        kernel = job.kernel.model_copy(update={"source": source, "options": options})
        template = Template(kernel=kernel)
        session = sessions(on, loose)
        times = {t.workload: time_us(job, t) or 0.0 for t in baseline.timings}
        configured = template.configured({})
        compiled = built.setdefault(source, built.get(source) or session.compile(configured))
        outcome = (run_gate if gate else run_trial)(session, template, configured, compiled, times)
        if isinstance(outcome, Rejected) or "OUTLIVES" in source:
            # The next trial must not inherit what this one did to the child.
            session.renew()
        return outcome

    return run


def source(body: str, before: str = "") -> str:
    return f"{before}\n{HEAD}{body}\n}}\n"


COUNTS = source(
    f"int c = atomic_inc(&calls) / get_global_size(0);\n{LOOP} y[i] = c < 4 ? 2.0f * x[i] : y[i];",
    "/* OUTLIVES */ __global int calls = 0;",
)
LOOKS_WHETHER_DONE = source(
    f"int f = get_global_id(0); if (f < n && y[f] == 2.0f * x[f]) return;\n{LOOP} y[i] = 2.0f * x[i];"
)
SMALL_INPUTS_ONLY = source(f"{LOOP} y[i] = fabs(x[i]) < 40.0f ? 2.0f * x[i] : 0.0f;")
KNOWN_LENGTH = source(f"{LOOP} y[i] = n == {N} ? 2.0f * x[i] : 3.0f * x[i];")
HUGE_IS_ZERO = source(f"{LOOP} y[i] = fabs(x[i]) > 0x1p22f ? 0.0f : 2.0f * x[i];")
READS_OLD_OUTPUT = source(f"{LOOP} y[i] = 2.0f * x[i] * (1.0f + ((as_int(y[i]) >> 7) & 1) * 3e-6f);")
FEW_DIGITS = source(f"{LOOP} y[i] = as_float(as_int(2.0f * x[i]) & 0xfffff000);")
TABLE = source(f"{LOOP} y[i] = table[i & 1] * x[i];", "__constant float table[2] = {2.0f, 2.0f};")


@pytest.mark.parametrize("honest", [HONEST, TABLE])
def test_an_honest_kernel_passes_everything(try_candidate: Try, honest: str) -> None:
    outcome = try_candidate(honest)
    assert isinstance(outcome, Measured), outcome
    assert isinstance(try_candidate(honest, gate=False), Measured)


@pytest.mark.parametrize(
    ("cheat", "defence", "words", "loose"),
    [
        (SMALL_INPUTS_ONLY, "families", "inputs at", False),
        (KNOWN_LENGTH, "neighbours", "neighbouring shape", False),
        (HUGE_IS_ZERO, "worlds", "inputs by lot", False),
        (READS_OLD_OUTPUT, "determinism", "two launches", True),
        (FEW_DIGITS, "error_budget", "less exact", True),
        (LOOKS_WHETHER_DONE, "determinism", "two launches", False),
    ],
)
def test_each_defence_carries_its_load(
    try_candidate: Try, cheat: str, defence: str, words: str, loose: bool
) -> None:
    outcome = try_candidate(cheat, replace(FEW, **{defence: True}), loose)
    assert isinstance(outcome, Rejected)
    assert outcome.stage is Stage.CORRECTNESS
    assert words in outcome.reason
    assert isinstance(try_candidate(cheat, FEW, loose), Measured)


@pytest.mark.parametrize("cheat", [COUNTS, LOOKS_WHETHER_DONE], ids=["counts", "looks"])
@pytest.mark.parametrize("redrawn", [True, False])
def test_a_kernel_that_works_only_before_the_timing_is_found(
    try_candidate: Try, cheat: str, redrawn: bool
) -> None:
    open_door = replace(FEW, globals=False)
    watched = replace(open_door, timed_launches=True, redrawn_values=redrawn)
    # What one look misses by chance, a search sees in a few trials.
    found = (try_candidate(cheat, watched, gate=False) for _ in range(30))
    outcome = next(o for o in found if isinstance(o, Rejected))
    assert "in a launch that was timed" in outcome.reason
    assert isinstance(try_candidate(cheat, open_door, gate=False), Measured)


def test_a_variable_that_outlives_a_launch_is_refused_unread(try_candidate: Try) -> None:
    outcome = try_candidate(COUNTS)
    assert isinstance(outcome, Rejected)
    assert outcome.stage is Stage.COMPILE
    assert "program-scope" in outcome.reason


@pytest.mark.parametrize(
    "cheat",
    [
        source(f"{LOOP} y[i] = (__FILE__[1] == 'p' ? 2.0f : 3.0f) * x[i];"),
        source(f"{LOOP} y[i] = (__COUNTER__ ? 3.0f : 2.0f) * x[i];"),
        source(f"#if __LINE__ < 9\n{LOOP} y[i] = 2.0f * x[i];\n#endif"),
    ],
    ids=["place", "count", "line"],
)
def test_a_source_that_is_another_one_elsewhere_is_refused(try_candidate: Try, cheat: str) -> None:
    outcome = try_candidate(cheat, replace(FEW, telling=True))
    assert isinstance(outcome, Rejected)
    assert outcome.stage is Stage.COMPILE
    assert "elsewhere" in outcome.reason
    assert isinstance(try_candidate(cheat, FEW), Measured)


def test_what_the_users_kernel_tells_a_candidate_may_tell(ports: SessionPorts) -> None:
    line = source(f"{LOOP} y[i] = (__LINE__ > 0 ? 2.0f : 3.0f) * x[i];")
    job = job_of()
    own = job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": line})})
    session = DeviceSession(own, ports)
    try:
        session.baseline.learn(measure_baseline(session))
        assert session.baseline.own_telling == {"__LINE__"}
        for text, refused in ((line, False), (line.replace("__LINE__", "__COUNTER__ + 1"), True)):
            template = Template(kernel=own.kernel.model_copy(update={"source": text}))
            configured = template.configured({})
            compiled = session.compile(configured)
            assert isinstance(compiled, Compiled)
            assert (session.checker.binary_refusal(configured, compiled) is not None) is refused
    finally:
        session.close()


def test_the_baseline_remembers_what_it_is_right_on(baselines: dict[str, BaselineResult]) -> None:
    cases = baselines["tight"].cases
    families = {c.family.value for c in cases if not c.neighbour_of and c.family.value != "world"}
    assert families == {
        "declared", "scaled_up", "scaled_down", "zeros", "sparse", "sorted", "spike", "repeated", "wide"
    }  # fmt: skip
    near = {c.dimensions["n"] for c in cases if c.neighbour_of}
    assert near == {N + 1, N - 1, 97, 7, 1}
    ceilings = baselines["tight"].ceilings
    assert ceilings is not None
    assert 0 < ceilings.cold_bytes_per_s < 1e13
    assert 0 < ceilings.launch_us < 1000
    assert 1e7 < ceilings.flops_per_s < 1e13
