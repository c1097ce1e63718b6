"""An agent that wants tools used is asked again with what they said, within its calls and seconds."""

from dataclasses import replace

import pytest

from testbed.job_in_memory import Rows
from warpsmith.domain.jobs.job import Budget
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.snapshot import StartTask, apply, end_task
from warpsmith.tuning.decisions.time_budget import verification_s
from warpsmith.tuning.decisions.tool_turns import TOOL_SHARE
from warpsmith.tuning.tasks import (
    BaselineResult,
    StepPayload,
    StepResult,
    ToolAnswer,
    ToolCall,
    ToolPayload,
    ToolResult,
)


def job_with(turns: int, tools: int = 5, seconds_each: float = 1.0, answered: bool = False) -> Rows:
    """A job whose templater wants a tool used in so many turns, and answers then."""

    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        if payload.role != "templater" or payload.turn >= turns or not payload.tools:
            return None
        template = Template(kernel=rows.snapshot.job.kernel)
        answer = ToolAnswer(text="nothing was tried") if answered else None
        call = ToolCall(id=f"{payload.turn}.0", tool="check", draft="d0", template=template, answer=answer)
        return StepResult(provider="external", tool_calls=(call,))

    def tool(rows: Rows, payload: ToolPayload) -> ToolResult:
        return ToolResult(seconds=seconds_each)

    budget = Budget(rounds=1, trials=20, seconds=100)
    return Rows(budget, tools=tools, agent_step=step, tool=tool, provider="external")


def templaters(rows: Rows) -> list[StepPayload]:
    """Questions to the templater that is not the rules' own."""
    payloads = [t.payload for t in rows.snapshot.tasks]
    return [
        p for p in payloads if isinstance(p, StepPayload) and p.role == "templater" and p.provider is None
    ]


def test_a_conversation_is_a_row_of_turns() -> None:
    rows = job_with(turns=2)
    assert rows.run().state is JobState.DONE
    turns = templaters(rows)
    first = next(t.id for t in rows.snapshot.tasks if t.payload == turns[0])
    assert [(p.turn, p.first_turn, p.tools) for p in turns] == [(0, "", 5), (1, first, 4), (2, first, 3)]
    place = rows.kinds.index("tool")
    assert rows.kinds[place - 1 : place + 4] == ["agent_step", "tool", "agent_step", "tool", "agent_step"]
    made_by = rows.snapshot.candidates[0].made_by
    assert next(t.payload for t in rows.snapshot.tasks if t.id == made_by) == turns[2]


def test_what_is_answered_already_needs_no_device() -> None:
    rows = job_with(turns=1, answered=True)
    assert rows.run().state is JobState.DONE
    assert "tool" not in rows.kinds
    assert [p.turn for p in templaters(rows)] == [0, 1]


def test_a_job_without_tools_never_uses_one() -> None:
    rows = job_with(turns=3, tools=0)
    assert rows.run().state is JobState.DONE
    assert "tool" not in rows.kinds


def test_no_call_is_left_once_the_tools_have_had_their_seconds() -> None:
    rows = job_with(turns=5, seconds_each=100 * TOOL_SHARE)
    assert rows.run().state is JobState.DONE
    assert [p.tools for p in templaters(rows)] == [5, 0]


def test_tools_take_nothing_of_baseline_and_verification() -> None:
    rows = job_with(turns=1)
    rows.run()
    baseline = next(t.result for t in rows.snapshot.tasks if isinstance(t.result, BaselineResult))
    between = 100 - verification_s(rows.snapshot.job, baseline) - baseline.seconds
    assert between < 100
    assert templaters(rows)[0].tool_seconds == pytest.approx(TOOL_SHARE * between)


def test_a_tool_that_was_given_up_does_not_end_the_job() -> None:
    rows = job_with(turns=1)
    while not isinstance(rows.snapshot.tasks[-1].payload if rows.snapshot.tasks else None, ToolPayload):
        for action in decide(rows.snapshot):
            if isinstance(action, StartTask) and action.kind is TaskKind.TOOL:
                rows.snapshot = apply(rows.snapshot, action, "lost")
            else:
                rows.apply(action)
    rows.snapshot = end_task(rows.snapshot, "lost", TaskState.DEAD, None)
    assert rows.run().state is JobState.DONE
    assert [p.turn for p in templaters(rows)] == [0, 1]


def test_the_tuner_starts_a_conversation_of_its_own() -> None:
    rows = job_with(turns=1)
    step = rows.agent_step

    def bounded(rows: Rows, payload: StepPayload) -> StepResult | None:
        found = step(rows, payload)
        if found is None and payload.role == "templater" and payload.provider is None:
            template = Template(kernel=rows.snapshot.job.kernel)
            return StepResult(provider="external", template=template, ask_tuner=True)
        assert found is None or isinstance(found, StepResult)
        return found

    rows = replace(rows, agent_step=bounded, kinds=[])
    assert rows.run().state is JobState.DONE
    tuner = next(
        p for t in rows.snapshot.tasks if isinstance(p := t.payload, StepPayload) and p.role == "tuner"
    )
    assert (tuner.turn, tuner.first_turn, tuner.tools) == (0, "", 0)
