"""One job that `decide` drives, with its rows in memory and workers that answer at once."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from warpsmith.domain.jobs.job import RULES, AgentPolicy, Budget, Strategy
from warpsmith.domain.state import JobState, SliceEnd, TaskState
from warpsmith.domain.templates.template import AppliedRule, Template
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.snapshot import (
    Action,
    AddCandidate,
    CandidateSummary,
    JobSnapshot,
    StartTask,
    apply,
    end_task,
)
from warpsmith.tuning.tasks import (
    BaselinePayload,
    BaselineResult,
    CasesPayload,
    CasesResult,
    Choice,
    Counters,
    Idea,
    Payload,
    ProfilePayload,
    ProfileResult,
    Result,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    ToolPayload,
    ToolResult,
    VerifyPayload,
    VerifyResult,
)

Asked = TypeVar("Asked")
Answer = Callable[["Rows", Asked], Result | None]
"""What a worker brings back; None: as by default."""


def by_default(rows: "Rows", payload: object) -> None:
    """The answer of a worker of which a test says nothing."""
    return


@dataclass
class Rows:
    """The rows of one job, and workers that answer at once with what the test says."""

    budget: Budget
    strategy: Strategy = Strategy.TEMPLATE
    parents: int = 1
    ideas: int = 1
    tools: int = 0
    baseline: Answer[BaselinePayload] = by_default
    profile: Answer[ProfilePayload] = by_default
    agent_step: Answer[StepPayload] = by_default
    tool: Answer[ToolPayload] = by_default
    slice: Answer[SlicePayload] = by_default
    verify: Answer[VerifyPayload] = by_default
    objective: Callable[[CandidateSummary], float] = lambda candidate: 0.5
    provider: str = RULES
    """Whose name the answers bear; to a question with a provider, that one's."""
    kinds: list[str] = field(default_factory=list)
    """Of the tasks that were started, in order."""

    def __post_init__(self) -> None:
        agents = AgentPolicy(parents=self.parents, ideas=self.ideas, tools=self.tools)
        job = scale_job(budget=self.budget, strategy=self.strategy, agents=agents)
        self.snapshot = JobSnapshot(job, JobState.QUEUED, None, ("opencl-test",), 0.0, 0, (), ())

    def run(self, limit: int = 200) -> JobSnapshot:
        """Decide and do until the job has ended."""
        for _ in range(limit):
            if self.snapshot.state.is_terminal:
                return self.snapshot
            actions = decide(self.snapshot)
            assert actions == decide(self.snapshot)
            assert actions, f"stuck in {self.snapshot}"
            for action in actions:
                self.apply(action)
        raise AssertionError("does not end")

    def apply(self, action: Action) -> None:
        """Do what was decided."""
        match action:
            case StartTask():
                self._execute(action)
            case AddCandidate():
                self.snapshot = apply(self.snapshot, action, f"c{action.number}")
            case _:
                self.snapshot = apply(self.snapshot, action)

    def _execute(self, action: StartTask) -> None:
        self.kinds.append(action.kind.value)
        result = self._answer(action.payload)
        task = f"t{len(self.snapshot.tasks)}"
        self.snapshot = end_task(apply(self.snapshot, action, task), task, TaskState.DONE, result)
        if isinstance(action.payload, SlicePayload) and isinstance(result, SliceResult):
            self._count(action.payload.candidate, result)

    def _answer(self, payload: Payload) -> Result:
        match payload:
            case BaselinePayload():
                return self.baseline(self, payload) or BaselineResult(device=DEVICE)
            case CasesPayload():
                return CasesResult()
            case ProfilePayload():
                counters = Counters(values={"dram_percent": 41.0})
                return self.profile(self, payload) or ProfileResult(counters=counters)
            case StepPayload():
                return self.agent_step(self, payload) or self._step(payload)
            case ToolPayload():
                return self.tool(self, payload) or ToolResult(seconds=1.0)
            case SlicePayload():
                return self.slice(self, payload) or SliceResult(trials=min(7, payload.trials))
            case VerifyPayload():
                found = self.verify(self, payload)
                return found or VerifyResult(comparisons=(), choices=(Choice(workload="n=64"),), speedup=1.0)

    def _step(self, payload: StepPayload) -> StepResult:
        if payload.role in ("tester", "profiler"):
            return StepResult(provider=self.provider)
        if payload.role == "planner" and payload.ideas > 1 and self.provider != RULES:
            ideas = tuple(
                Idea(name=f"idea {n}", sentence="it differs", plan="go on") for n in range(payload.ideas)
            )
            return StepResult(provider=self.provider, ideas=ideas)
        if payload.role == "planner":
            return StepResult(provider=self.provider, plan="go on")
        rule = () if payload.provider is None else (AppliedRule(rule="block_size"),)
        template = Template(kernel=self.snapshot.job.kernel, applied=rule)
        return StepResult(provider=payload.provider or self.provider, template=template)

    def _count(self, candidate: str, result: SliceResult) -> None:
        s = self.snapshot
        right = result.ended_by is not SliceEnd.REJECTED
        changed = [
            replace(
                c,
                trials=c.trials + result.trials,
                measured=c.measured + (result.trials if right else 0),
                best_objective=self.objective(c) if right else c.best_objective,
            )
            if c.id == candidate
            else c
            for c in s.candidates
        ]
        self.snapshot = replace(s, candidates=tuple(changed), trials_done=s.trials_done + result.trials)


def steps(end: JobSnapshot) -> list[StepPayload]:
    """What agents were asked, in order."""
    return [t.payload for t in end.tasks if isinstance(t.payload, StepPayload)]


def roles(end: JobSnapshot) -> list[str]:
    """The roles of the agents that were asked, in order."""
    return [p.role for p in steps(end)]
