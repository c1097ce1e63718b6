"""What travels over HTTP. The API answers with these; the client and the CLI read them."""

from datetime import datetime

from warpsmith.domain.base import Frozen
from warpsmith.domain.device import DeviceLimits
from warpsmith.domain.job import Job
from warpsmith.domain.kernel import Argument, Launch
from warpsmith.domain.outcome import Comparison, Outcome, WorkloadTiming
from warpsmith.domain.reason import Reason
from warpsmith.domain.space import Configuration, Space
from warpsmith.domain.state import CandidateState, JobState, TrialState
from warpsmith.domain.template import AppliedRule, RuleFault
from warpsmith.tuning.analysis.search_facts import Facts


class WorkloadProgress(Frozen):
    """Best so far on one workload; search figures, not yet verified."""

    workload: str
    baseline_us: float | None = None
    best_us: float | None = None
    speedup: float | None = None


class JobStatus(Frozen):
    """Where a job stands."""

    id: str
    name: str
    state: JobState
    detail: str = ""
    """What it is doing, what it waits for, or why it ended."""
    queue: str | None = None
    """Of a job that waits for its first turn on a device: where."""
    place: int | None = None
    """Its place there, 1 being the next; where tenants take turns, as if all others went first."""
    tenant: str | None = None
    """Whose it is; told to operators only."""
    backend: str
    device_class: str | None = None
    round: int = 0
    rounds: int
    trials_done: int = 0
    trials_rejected: int = 0
    trials_budget: int
    feasible: int | None = None
    """Exact number of feasible configurations of the current candidate."""
    best_speedup: float | None = None
    """Weighted geometric mean over workloads, best so far; verified once the job is done."""
    workloads: tuple[WorkloadProgress, ...] = ()
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    reason: Reason | None = None
    """Why it ended; None before the end, and where it was cancelled."""
    seconds_left: float | None = None
    tokens_used: int = 0
    usd_used: float = 0.0
    labels: dict[str, str] = {}


class JobPage(Frozen):
    """Jobs, newest first."""

    items: tuple[JobStatus, ...]
    next: str | None = None
    """Pass it as `after` to get the next page."""


class EventView(Frozen):
    """Something that happened to a job."""

    id: int
    at: datetime
    kind: str
    """`state`: the job's; `task`: a task of it was ended, given back or parked."""
    data: dict[str, str | int | float | bool | None]


class EventPage(Frozen):
    """Events, oldest first."""

    items: tuple[EventView, ...]
    next: int | None = None
    """Pass it as `after` to get the next page."""


class TrialView(Frozen):
    """One trial."""

    number: int
    candidate: str
    round: int
    configuration: Configuration
    state: TrialState
    outcome: Outcome | None = None
    seconds: float | None = None
    reused: bool = False
    """Taken over from an earlier job of the same kernel; it spent nothing of this job's budget."""


class TrialPage(Frozen):
    """Trials in the order in which they were proposed."""

    items: tuple[TrialView, ...]
    next: int | None = None


class CandidateView(Frozen):
    """One candidate with its provenance."""

    id: str
    round: int
    parent: str | None = None
    state: CandidateState
    agent_step: str | None = None
    applied: tuple[AppliedRule, ...] = ()
    declined: tuple[str, ...] = ()
    """Rules that could not prove their precondition, and those that failed before, with the reason."""
    space: Space
    feasible: int | None = None
    source: str
    entry: str


class CandidateList(Frozen):
    """All candidates of a job."""

    items: tuple[CandidateView, ...]


class DispatchEntry(Frozen):
    """What to launch for one workload. `configuration` None: keep the baseline."""

    workload: str
    configuration: Configuration | None
    candidate: str | None
    source: str | None
    """Complete tuned source, macros set; None where the baseline stays."""
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    local_bytes: tuple[int, ...] = ()
    """OpenCL: bytes of each argument with the role `local`, in order."""
    launch: Launch | None = None
    """What `grid`, `block` and `shared_bytes` are made of, for other shapes; None in older results."""
    local_arguments: tuple[Argument, ...] = ()
    """What `local_bytes` is made of."""
    speedups: dict[str, float] = {}
    """By workload, baseline time over this configuration's: on its own the low end of the verified
    interval, on others what the search saw."""


class RejectionCount(Frozen):
    """Rejected configurations by stage and reason."""

    stage: str
    reason: str
    count: int
    example: Configuration


class JobResult(Frozen):
    """The evidence. Speed-ups are those of the re-measurement only."""

    id: str
    job: Job
    state: JobState
    detail: str = ""
    reason: Reason | None = None
    """Why it ended; None where it was cancelled, and in older results."""
    baseline: tuple[WorkloadTiming, ...] = ()
    """The kernel as it is, where it was measured; also of a job that failed afterwards."""
    aa_width: float | None = None
    """Half width of the 95 % interval of the kernel against itself; None: not measured."""
    device: str
    driver: str
    device_class: str
    limits: DeviceLimits | None = None
    """Those that launches and constraints may name; None in older results."""
    speedup: float | None
    """Weighted geometric mean over workloads of the verified speed-ups; baseline kept counts as 1."""
    comparisons: tuple[Comparison, ...]
    dispatch: tuple[DispatchEntry, ...]
    trials_measured: int
    trials_rejected: int
    trials_cut_short: int = 0
    """Ended before they ran on all workloads, since the others promised too little."""
    trials_reused: int = 0
    """Taken over from earlier jobs of the same kernel; not among those above."""
    trials_per_second: float
    rejections: tuple[RejectionCount, ...]
    seconds: float
    candidates: tuple[CandidateView, ...]
    rule_faults: tuple[RuleFault, ...] = ()
    """Rewrite rules of ours that made a template fail with its defaults; later templates do without."""
    facts: Facts | None = None
    """What bounds the kernel, and which parameters matter, from the candidate with the best trial."""
    warpsmith_version: str


class WorkerView(Frozen):
    """One worker and what it offers."""

    id: str
    hostname: str
    version: str
    queues: tuple[str, ...]
    devices: tuple[str, ...]
    """Device classes."""
    unavailable: dict[str, str] = {}
    """Back ends that this worker cannot use, and why."""
    compile_slots: int = 0
    """Kernels that it compiles at once for devices of other workers."""
    last_seen: datetime
    alive: bool


class WorkerList(Frozen):
    """All workers seen lately."""

    items: tuple[WorkerView, ...]


class FieldProblem(Frozen):
    """One bad field."""

    field: str
    message: str


class Problem(Frozen):
    """RFC 9457 problem details, `application/problem+json`."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: tuple[FieldProblem, ...] = ()
