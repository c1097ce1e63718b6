"""Turns of a conversation: tools are used for an agent, and it is asked again with what they said. Pure."""

from warpsmith.domain.state import JobState
from warpsmith.tuning.decisions.shares import seconds_left
from warpsmith.tuning.decisions.snapshot import Action, JobSnapshot, SetJobState, StartTask, TaskView
from warpsmith.tuning.decisions.task_history import baseline_of
from warpsmith.tuning.decisions.time_budget import search_s
from warpsmith.tuning.tasks import StepPayload, StepResult, ToolPayload, ToolResult

TOOL_SHARE = 0.3
"""Share of the seconds between baseline and verification that tools may take in all; the search has the rest.
As a share of all seconds of a job it left two searches on a GPU one trial each."""


def with_tools(snapshot: JobSnapshot, payload: StepPayload, used: int = 0) -> StepPayload:
    """A question for a template, with the calls and seconds that tools may take before the answer.

    Args:
        used: number of calls of its conversation so far.
    """
    left = snapshot.job.agents.tools - used
    seconds = _tool_seconds_left(snapshot)
    if left <= 0 or seconds <= 0:
        left, seconds = 0, 0.0
    return payload.model_copy(update={"tools": left, "tool_seconds": seconds})


def use_tools(
    snapshot: JobSnapshot, step: str, payload: StepPayload, result: StepResult
) -> tuple[Action, ...]:
    """Actions after a turn that wants tools: their use on a device, then the next turn.

    Args:
        step: task of the turn.
    """
    waiting = any(call.answer is None for call in result.tool_calls)
    if waiting and _tool_task(snapshot, step) is None:
        detail = f"round {payload.round}: tools for the {payload.role}"
        seconds = max(0.001, min(_tool_seconds_left(snapshot), seconds_left(snapshot)))
        return (SetJobState(JobState.PLANNING, detail), StartTask(ToolPayload(step=step, seconds=seconds)))
    first = payload.first_turn or step
    used = sum(len(turn.tool_calls) for turn in _turns(snapshot, first))
    following = payload.model_copy(update={"turn": payload.turn + 1, "first_turn": first})
    detail = f"round {payload.round}: {payload.role} at work, {used} tool calls so far"
    return (SetJobState(JobState.PLANNING, detail), StartTask(with_tools(snapshot, following, used)))


def _turns(snapshot: JobSnapshot, first: str) -> list[StepResult]:
    """The turns of a conversation that have ended, in order."""
    return [
        t.result
        for t in snapshot.tasks
        if isinstance(t.payload, StepPayload)
        and isinstance(t.result, StepResult)
        and first in (t.id, t.payload.first_turn)
    ]


def _tool_task(snapshot: JobSnapshot, step: str) -> TaskView | None:
    return next(
        (t for t in snapshot.tasks if isinstance(t.payload, ToolPayload) and t.payload.step == step), None
    )


def _tool_seconds_left(snapshot: JobSnapshot) -> float:
    baseline = baseline_of(snapshot)
    used = sum(t.result.seconds for t in snapshot.tasks if isinstance(t.result, ToolResult))
    return search_s(snapshot.job, baseline, None, baseline.seconds) * TOOL_SHARE - used
