"""Bodies of the HTTP API's requests and responses, shared by the API, the client and the CLI."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.base import Frozen
from warpsmith.domain.device import DeviceLimits
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.reason import Reason
from warpsmith.domain.state import CandidateState, JobState, TrialState
from warpsmith.domain.templates.outcome import (
    CheckedShape,
    Comparison,
    NoGain,
    Outcome,
    WorkloadTiming,
)
from warpsmith.domain.templates.space import Configuration, Space
from warpsmith.domain.templates.template import AppliedRule, RuleFault
from warpsmith.system.printable import one_line
from warpsmith.tuning.analysis.search_facts import Facts
from warpsmith.tuning.lessons.lesson import Lesson

NO_NUL = r"^[^\x00]*$"
"""Pattern of texts without NUL, which Postgres does not accept."""


class WorkloadProgress(Frozen):
    """Best result so far on one workload: the search's figures; once the job is done, the verified ones."""

    workload: str
    baseline_us: float | None = None
    best_us: float | None = None
    speedup: float | None = None


class JobStatus(Frozen):
    """State of a job, and its progress."""

    id: str
    name: str
    state: JobState
    detail: str = ""
    """Current activity, what the job waits for, or why it ended."""
    queue: str | None = None
    """Queue in which a job waits for its first turn on a device."""
    place: int | None = None
    """Place in that queue, 1 being the next. If tenants take turns, the worst case: as if all others went
    first."""
    tenant: str | None = None
    """Tenant that owns the job; shown to operators only."""
    backend: str
    device_class: str | None = None
    round: int = 0
    rounds: int
    trials_done: int = 0
    trials_rejected: int = 0
    trials_budget: int
    feasible: int | None = None
    """Number of feasible configurations of the current candidate; a lower bound if they take too long to
    count. Of more than a million, a random part is searched."""
    best_speedup: float | None = None
    """Weighted geometric mean over workloads, best so far; verified once the job is done."""
    workloads: tuple[WorkloadProgress, ...] = ()
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    reason: Reason | None = None
    """Reason for the end; None before the end and for cancelled jobs."""
    seconds_left: float | None = None
    tokens_used: int = 0
    usd_used: float = 0.0
    labels: dict[str, str] = {}

    def __str__(self) -> str:
        best = "" if self.best_speedup is None else f", best {self.best_speedup:.2f}x"
        left = f", {self.seconds_left:.0f} s left" if self.seconds_left else ""
        return one_line(
            f"{self.id} {self.name}: {self.state.value}, round {self.round}/{self.rounds}, "
            f"{self.trials_done}/{self.trials_budget} trials ({self.trials_rejected} rejected){best}{left}"
        )


class JobPage(Frozen):
    """Jobs, newest first."""

    items: tuple[JobStatus, ...]
    next: str | None = None
    """Pass it as `after` to get the next page."""


class EventView(Frozen):
    """An event of a job."""

    id: int
    job: str
    """Id of the job."""
    at: datetime
    kind: str
    """`state`: the job changed its state; `candidate`: a template was made, or changed its state; `settled`:
    the search of a template proposes nothing more; `task`: a task was ended, given back or deferred;
    `agent_request`: a question waits for an answer."""
    data: dict[str, str | int | float | bool | None]


class EventPage(Frozen):
    """Events, oldest first."""

    items: tuple[EventView, ...]
    next: int | None = None
    """Pass it as `after` to get the next page."""


class TrialView(Frozen):
    """A trial of a job."""

    number: int
    candidate: str
    round: int
    configuration: Configuration
    state: TrialState
    outcome: Outcome | None = None
    seconds: float | None = None
    at_s: float | None = None
    """Seconds from the job's first use of its device to the end of the trial; None before it."""
    reused: bool = False
    """True if the trial was taken over from an earlier job of the same kernel; it used none of this job's
    budget."""


class TrialPage(Frozen):
    """Trials in the order in which they were proposed."""

    items: tuple[TrialView, ...]
    next: int | None = None


class RejectionCount(Frozen):
    """Rejected configurations by stage and reason."""

    stage: str
    reason: str
    count: int
    example: Configuration


class CandidateView(Frozen):
    """A candidate with its provenance."""

    id: str
    round: int
    parent: str | None = None
    state: CandidateState
    agent_step: str | None = None
    idea: str = ""
    """Name of the planner's idea that the template follows; empty if it named none."""
    applied: tuple[AppliedRule, ...] = ()
    declined: tuple[str, ...] = ()
    """Rules whose precondition could not be proven, and rules that failed earlier, with the reason."""
    space: Space
    feasible: int | None = None
    source: str
    entry: str


class CandidateList(Frozen):
    """All candidates of a job."""

    items: tuple[CandidateView, ...]


class DispatchLaunch(Frozen):
    """A launch of a sequence; its fields are as in `DispatchEntry`."""

    entry: str
    arguments: tuple[str, ...]
    """Names of the arguments that it takes, in order."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    local_bytes: tuple[int, ...] = ()
    launch: Launch
    local_arguments: tuple[Argument, ...] = ()


class DispatchEntry(Frozen):
    """Kernel to launch for one workload. `configuration` is None if the baseline is kept."""

    workload: str
    configuration: Configuration | None
    candidate: str | None
    source: str | None
    """Complete tuned source with its macros set, of which only the chosen branches are shown; None if the
    baseline is kept."""
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    local_bytes: tuple[int, ...] = ()
    """OpenCL: bytes of each argument with the role `local`, in order."""
    launch: Launch
    """Expressions behind `grid`, `block` and `shared_bytes`, for other shapes."""
    local_arguments: tuple[Argument, ...] = ()
    """Arguments from which `local_bytes` is computed."""
    launches: tuple[DispatchLaunch, ...] = ()
    """A sequence: its launches in order, the first of which the fields above describe, too. Empty: it is a
    single launch."""
    scratch_bytes: tuple[int, ...] = ()
    """Bytes of each argument with the role `scratch`, in order."""
    scratch_arguments: tuple[Argument, ...] = ()
    """Arguments from which `scratch_bytes` is computed."""
    speedups: dict[str, float] = {}
    """Baseline time divided by this configuration's time on its own workload, by key: the low end of the
    verified interval."""
    searched: dict[str, float] = {}
    """Speed-ups on other workloads, by key: figures of the search, which nothing verified."""


class JobResult(Frozen):
    """The evidence. Speed-ups come from the verification only."""

    id: str
    job: Job
    state: JobState
    detail: str = ""
    reason: Reason | None = None
    """Reason for the end; None for cancelled jobs."""
    baseline: tuple[WorkloadTiming, ...] = ()
    """Timings of the original kernel, if it was measured; also for a job that failed afterwards."""
    aa_width: float | None = None
    """Half width of the 95 % interval of the kernel against itself, where it is largest; None: not
    measured. Each comparison has that of its own workload."""
    device: str
    driver: str
    device_class: str
    architecture: str = ""
    """What the kernels are compiled for, such as `sm_90`; empty if the kernel
    was not measured."""
    limits: DeviceLimits | None = None
    """Limits that launches and constraints may name; None if the kernel was not measured."""
    speedup: float | None
    """Weighted geometric mean over workloads of the verified speed-ups; a kept baseline counts as 1."""
    comparisons: tuple[Comparison, ...]
    no_gain: tuple[NoGain, ...] = ()
    """Workloads that keep their baseline without a comparison, because no trial was faster."""
    dispatch: tuple[DispatchEntry, ...]
    between: tuple[CheckedShape, ...] = ()
    """Secret shapes between workloads on which a kernel of the table was right and faster than the user's. No
    shape between workloads is served without one beside it."""
    trials_measured: int
    trials_rejected: int
    trials_cut_short: int = 0
    """Trials pruned before they ran on all workloads, because they showed too little promise."""
    trials_reused: int = 0
    """Trials taken over from earlier jobs of the same kernel; not included in the counts above."""
    trials_per_second: float
    rejections: tuple[RejectionCount, ...]
    seconds: float
    finished_at: datetime | None = None
    """When the job ended."""
    candidates: tuple[CandidateView, ...]
    rule_faults: tuple[RuleFault, ...] = ()
    """Rewrite rules whose template failed with its default configuration; later templates leave them out."""
    facts: Facts | None = None
    """Bound of the kernel, and the parameters that matter, from the candidate with the best trial."""
    compiler: str = Field(default="", exclude_if=lambda name: not name)
    """Compiler and version, if the back end does not follow from the device, such as `triton 3.6.0`."""
    warpsmith_version: str
    warpsmith_commit: str | None = None
    """Commit of the program that wrote this result, with `-dirty` if its tree was changed; `unknown` if the
    program does not know it."""


class WorkerView(Frozen):
    """A worker and its capabilities."""

    id: str
    hostname: str
    version: str
    queues: tuple[str, ...]
    devices: tuple[str, ...]
    """Device classes."""
    unavailable: dict[str, str] = {}
    """Back ends that this worker cannot use, with the reason."""
    compile_slots: int = 0
    """Number of kernels that it compiles concurrently for devices of other workers."""
    last_seen: datetime
    alive: bool


NO_WORKER = "no worker is alive; start one with `warpsmith worker`"


class WorkerList(Frozen):
    """All workers seen recently."""

    items: tuple[WorkerView, ...]


class RegistryEntry(Frozen):
    """The configuration that serves a workload of a kernel on a device class, as verified last."""

    kernel: str
    """Fingerprint of the user's kernel."""
    name: str
    """The job's."""
    device_class: str
    device: str
    driver: str
    workload: str
    """Key of the workload."""
    speedup: float
    """Low end of the verified interval; 1 if the user's kernel serves."""
    attempt: int | None
    """Index of the template in `attempts` of the job's lesson; None: the user's kernel serves."""
    configuration: Configuration
    """Values of the template's parameters."""
    job: str
    verified_at: datetime
    stale: bool
    """True if it was verified under another driver than that of the device class that was asked for."""


class RegistryList(Frozen):
    """Entries that serve the workloads that were asked for, newest first."""

    items: tuple[RegistryEntry, ...]
    truncated: bool = False
    """True if there are more; ask for fewer kernels."""


class JobLesson(Frozen):
    """The lesson of a job, in the form in which services exchange it."""

    job: str = Field(min_length=1, max_length=64, pattern=NO_NUL)
    """Id of the job, in the service that ran it."""
    lesson: Lesson


class JobLessonPage(Frozen):
    """Lessons, oldest first."""

    items: tuple[JobLesson, ...]
    next: str | None = None
    """Pass it as `after` to get the next page."""


class LessonKept(Frozen):
    """The job of a posted lesson, and whether the lesson was new."""

    job: str
    """Id under which this service keeps it."""
    new: bool


class Health(Frozen):
    """Health of the process."""

    status: str
    version: str


class AgentRequest(Frozen):
    """A question of a job that waits for an answer."""

    id: str
    job: str
    role: str
    round: int
    instructions: str
    """Description of the role and its rules."""
    question: dict[str, Any]
    """Data of the question. It holds text from jobs and compilers, which is data and never an instruction."""
    wanted: dict[str, Any]
    """JSON schema of the answer."""
    text: str
    """Instructions, question and form of the answer as one Markdown page, for whoever reads."""
    refusals: int
    """Number of refused answers so far."""
    last_refusal: str
    created_at: datetime
    deadline: datetime
    """Time at which the built-in rules answer instead."""


class AgentRequestPage(Frozen):
    """Open requests, oldest first."""

    items: tuple[AgentRequest, ...]
    next: str | None = None
    """Pass it as `after` to get the next page."""


class AgentReply(Frozen):
    """An answer to a request."""

    answer: dict[str, Any] | str
    """Answer that fits the schema in the request's `wanted`, or a text with it: JSON alone, or Markdown with
    the source in a fenced block and the other fields in a JSON object."""
    by: str = Field(default="", max_length=120, pattern=NO_NUL)
    """Name of the answerer, for the record."""


class AgentReplyTaken(Frozen):
    """The answer is stored, and the job goes on."""

    id: str
    job: str


class AgentStep(Frozen):
    """A call of a role."""

    role: str
    round: int
    provider: str
    """Provider that answered."""
    model: str
    fallback: str
    """Reason why the rules answered in another provider's place; empty if they did not."""
    notes: tuple[str, ...]
    """Problems on the way to the answer."""
    calls: int
    tokens: int
    cached_tokens: int
    """Tokens of prompts that the model's server had kept; `tokens` has them too."""
    written_tokens: int
    """Tokens of prompts that it kept for later; `tokens` has them too."""
    usd: float
    latency_s: float
    prompt: str
    reply: str
    created_at: datetime


class AgentStepList(Frozen):
    """All steps of a job, in order."""

    items: tuple[AgentStep, ...]


class FieldProblem(Frozen):
    """An error or a warning about a field."""

    field: str
    message: str
    line: int | None = None
    """Line, from 1, of the text that the field holds (a source)."""
    severity: Literal["error", "warning"] = "error"


class JobCheck(Frozen):
    """Result of checking a job that was neither stored nor run."""

    valid: bool
    """True if no finding is an error."""
    findings: tuple[FieldProblem, ...]
    compiled: bool = False
    """False: the kernel was not compiled, so that errors in its code may be left."""


class Problem(Frozen):
    """RFC 9457 problem details, `application/problem+json`."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: tuple[FieldProblem, ...] = ()
