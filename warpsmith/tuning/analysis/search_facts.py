"""Facts about a kernel and its search in numbers: for models, rules and the report. Pure."""

from collections.abc import Mapping

from pydantic import Field

from warpsmith.domain.base import Frozen
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.launch_size import LaunchSize, launch_size
from warpsmith.domain.jobs.plan import plan_workload
from warpsmith.domain.templates.outcome import CompileFacts, Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ExpressionError
from warpsmith.measure.occupancy import occupancy
from warpsmith.measure.roofline import bytes_once, not_refuted
from warpsmith.tuning.analysis.floors import floors
from warpsmith.tuning.analysis.parameter_importance import Effect, Interaction, Trials, effects
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.tasks import BaselineResult, Counters, JobBaseline


class WorkloadFacts(Frozen):
    """One kernel on one workload."""

    workload: str
    time_us: float
    bytes: int
    """Bytes that a launch moves: what the job says, else all buffers once and in-out buffers twice."""
    bytes_per_s: float
    """Those bytes divided by the time."""
    floor_us: float | None = None
    """Shortest time that the device's memory and launches allow, µs; None: unknown."""
    floor_bound: str = ""
    """`bytes`, `flops` or `launch`."""
    roofline_share: float | None = None
    """Floor divided by time: 1 is as fast as the device allows. Never more: see `not_refuted`."""
    blocks: int = 0
    threads_per_block: int = 0
    shared_bytes: int = 0
    """Bytes of dynamic shared memory per block."""
    occupancy: float | None = None
    """Resident warps divided by the most that fit; None if the platform does not report it."""


class KernelFacts(Frozen):
    """One kernel: the compiler's report and its timings."""

    configuration: Configuration = {}
    objective: float = 1.0
    """Time divided by that of the user's kernel."""
    registers: int | None = None
    spill_bytes: int | None = None
    static_shared_bytes: int | None = None
    local_bytes: int | None = None
    workloads: tuple[WorkloadFacts, ...] = ()
    counters: dict[str, float] = {}
    """Hardware counters on the heaviest workload, if a profiler is available."""
    counters_missing: str = ""
    """The reason why a requested profiler measured nothing; empty if none was requested."""


class Facts(Frozen):
    """The user's kernel, the best of a candidate, and the trials of its search."""

    peak_bytes_per_s: float | None = None
    """Rate of a copy by the service's own kernel, cold or hot as in the objective; None: not measured."""
    launch_us: float | None = None
    """Device time of an empty kernel, µs."""
    baseline: KernelFacts
    best: KernelFacts | None = None
    """None: nothing is measured yet."""
    trials: int = 0
    measured: int = 0
    effects: tuple[Effect, ...] = Field(default=(), max_length=64)
    interactions: tuple[Interaction, ...] = ()


def facts_of(
    job: Job, baseline: BaselineResult, template: Template | None = None, trials: Trials = ()
) -> Facts:
    """The facts of a job, and of one of its candidates with its finished trials."""
    user = Template(kernel=job.kernel, space=job.space)
    own_us = {t.workload: time_us(job, t) for t in baseline.timings}
    best = None
    found = best_of(trials)
    if template is not None and found is not None:
        configuration, outcome = found
        times = {t.workload: time_us(job, t) for t in outcome.timings}
        best = _kernel(job, baseline, template, configuration, times, outcome.facts)
        key = template.configured(configuration).key
        best = _profiled(best.model_copy(update={"objective": outcome.objective}), _counters(baseline, key))
    single, pairs = effects(trials)
    ceilings = baseline.ceilings
    cold = job.objective.cache.value == "cold"
    return Facts(
        peak_bytes_per_s=None
        if ceilings is None
        else (ceilings.cold_bytes_per_s if cold else ceilings.hot_bytes_per_s),
        launch_us=None if ceilings is None else ceilings.launch_us,
        baseline=_profiled(
            _kernel(job, baseline, user, job.space.defaults, own_us, baseline.facts), baseline.counters
        ),
        best=best,
        trials=len(trials),
        measured=sum(isinstance(o, Measured) for _, o in trials),
        effects=single,
        interactions=pairs,
    )


def best_of(trials: Trials) -> tuple[Configuration, Measured] | None:
    """The fastest trial, the first of several; None if none was measured."""
    measured = [(c, o) for c, o in trials if isinstance(o, Measured)]
    return min(measured, key=lambda pair: pair[1].objective, default=None)


def _counters(baseline: BaselineResult, kernel: str) -> Counters:
    """Counters of the newest profile of a configured kernel; empty if there is none."""
    counted = baseline.counted if isinstance(baseline, JobBaseline) else ()
    return next((c for c in reversed(counted) if c.kernel == kernel), Counters())


def _profiled(kernel: KernelFacts, found: Counters) -> KernelFacts:
    return kernel.model_copy(update={"counters": found.values, "counters_missing": found.missing})


def _kernel(
    job: Job,
    baseline: BaselineResult,
    template: Template,
    configuration: Configuration,
    times_us: Mapping[str, float | None],
    compiled: CompileFacts,
) -> KernelFacts:
    found = []
    for workload in job.workloads:
        time = times_us.get(workload.key)
        if time:
            found.append(_workload(job, baseline, template, configuration, workload, time, compiled))
    return KernelFacts(
        configuration=configuration,
        registers=compiled.registers,
        spill_bytes=compiled.spill_bytes,
        static_shared_bytes=compiled.static_shared_bytes,
        local_bytes=compiled.local_bytes,
        workloads=tuple(found),
    )


def _workload(
    job: Job,
    baseline: BaselineResult,
    template: Template,
    configuration: Configuration,
    workload: Workload,
    time: float,
    compiled: CompileFacts,
) -> WorkloadFacts:
    device = baseline.device
    moved = _bytes(job, baseline, workload)
    floor = not_refuted(floors(job, baseline).get(workload.key), time)
    facts = WorkloadFacts(
        workload=workload.key,
        time_us=time,
        bytes=moved,
        bytes_per_s=moved / time * 1e6,
        floor_us=None if floor is None else floor.us,
        floor_bound="" if floor is None else floor.bound,
        roofline_share=None if floor is None else floor.us / time,
    )
    try:
        size = launch_size(template.configured(configuration), workload, device)
    except ExpressionError:
        return facts
    threads = size.block[0] * size.block[1] * size.block[2]
    return facts.model_copy(
        update={
            "blocks": size.grid[0] * size.grid[1] * size.grid[2],
            "threads_per_block": threads,
            "shared_bytes": size.dynamic_bytes,
            "occupancy": occupancy_of(size, compiled, device),
        }
    )


def occupancy_of(size: LaunchSize, compiled: CompileFacts, device: DeviceInfo) -> float | None:
    """Resident warps divided by the most that fit, for one launch; the lowest of a sequence.

    None if the platform does not report it.
    """
    if compiled.registers is None:
        return None
    found = []
    for step in size.steps:
        threads = step.block[0] * step.block[1] * step.block[2]
        shared = step.dynamic_bytes + (compiled.static_shared_bytes or 0)
        found.append(occupancy(device.architecture, threads, compiled.registers, shared))
    known = [share for share in found if share is not None]
    return min(known, default=None)


def _bytes(job: Job, baseline: BaselineResult, workload: Workload) -> int:
    given = job.bytes_of(workload)
    if given is not None:
        return given
    try:
        plan = plan_workload(job.kernel, workload, baseline.device.scope() | job.space.defaults, seed=0)
    except ExpressionError:
        return 0
    return bytes_once(plan)
