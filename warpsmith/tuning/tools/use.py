"""Uses tools on a device for an agent that has not answered yet, within seconds of its job's budget."""

import time
from collections.abc import Sequence

from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult, ToolAnswer, ToolCall, ToolResult
from warpsmith.tuning.tools.check import check
from warpsmith.tuning.tools.compile import compile_
from warpsmith.tuning.tools.profile import Interpret, profile
from warpsmith.tuning.tools.time import time_
from warpsmith.tuning.tools.workbench import Workbench

LATE = ToolAnswer(text="not done: the seconds that tools may take were spent by earlier calls", ok=False)


def use(
    session: DeviceSession,
    baseline: BaselineResult,
    calls: Sequence[ToolCall],
    seconds: float,
    interpret: Interpret,
) -> ToolResult:
    """Run the tools and answer call by call.

    Args:
        calls: those without an answer, in order.
        seconds: after which no further call and no further configuration begins.
        interpret: the diagnosis in the answer of `profile`.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    session.baseline.learn(baseline)
    bench = Workbench(session, baseline, seconds)
    began = time.monotonic()
    answers: dict[str, ToolAnswer] = {}
    for call in calls:
        if answers and time.monotonic() - began > seconds:
            answers[call.id] = LATE
            continue
        from_here = time.monotonic()
        answer = _answer(bench, call, interpret)
        answers[call.id] = answer.model_copy(update={"seconds": time.monotonic() - from_here})
    return ToolResult(answers=answers, seconds=time.monotonic() - began)


def _answer(bench: Workbench, call: ToolCall, interpret: Interpret) -> ToolAnswer:
    template = call.template
    assert template is not None, "calls that need a device name a template"
    configurations = call.configurations or (template.space.defaults,)
    match call.tool:
        case "compile":
            return compile_(bench, template, configurations)
        case "check":
            return check(bench, template, configurations)
        case "time":
            return time_(bench, template, configurations)
        case "profile":
            return profile(bench, template, configurations[0], interpret)
    raise AssertionError(f"{call.tool} needs no device")
