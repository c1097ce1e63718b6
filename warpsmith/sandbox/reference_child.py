"""Runs the user's NumPy reference: confined, on float64 copies of the inputs, away from any device."""

import traceback
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.domain.argument import Role
from warpsmith.domain.by_value_plan import ValuePlan, given_values
from warpsmith.domain.plan import BufferPlan, ScalarPlan, WorkloadPlan
from warpsmith.sandbox.child import keep_freed_memory, take_channel
from warpsmith.sandbox.confine import Confinement, confine, memory_limit
from warpsmith.sandbox.messages import plan_from_json
from warpsmith.sandbox.process import system_paths
from warpsmith.verify.dtypes import as_wanted
from warpsmith.verify.inputs import draw_wide


class _BadReference(Exception):
    """An error in the user's reference."""


def main(argument: dict[str, Any]) -> None:
    """Answer requests, each in a namespace of its own, until the parent closes the pipe."""
    channel = take_channel()
    keep_freed_memory()
    confine(
        Confinement(
            read=system_paths(),
            write=(Path(argument["private"]),),
            devices=(Path("/dev/null"),),
            memory_bytes=memory_limit(int(argument["memory_bytes"])),
            forks=False,
        )
    )
    while True:
        request, blobs = channel.receive()
        plan = plan_from_json(request["plan"])
        try:
            outputs = _compute(bytes(blobs[0]).decode(), request["function"], plan, request["dims"])
        except _BadReference as exc:
            channel.send({"error": str(exc)[:1500]})
            continue
        except MemoryError as exc:
            channel.send({"error": f"too large for a reference process: {exc}"[:1500]})
            continue
        names = [b.name for b in plan.mutated]
        channel.send({"names": names}, [outputs[n].data.cast("B") for n in names])


def _compute(
    source: str, function: str, plan: WorkloadPlan, dims: dict[str, int]
) -> dict[str, "np.ndarray[Any, Any]"]:
    inputs: dict[str, Any] = {}
    for argument in (*plan.arguments, *plan.behind):
        if isinstance(argument, ScalarPlan):
            inputs[argument.name] = argument.value
        elif isinstance(argument, ValuePlan):
            inputs[argument.name] = given_values(argument)
        elif isinstance(argument, BufferPlan) and argument.role is not Role.OUTPUT:
            drawn = draw_wide(argument, plan.seed, plan.variant, plan.family)
            inputs[argument.name] = drawn.reshape(argument.shape)
    names: dict[str, Any] = {"np": np}
    try:
        exec(compile(source, "reference", "exec"), names)  # the sandbox is the process, not the language
        found = names[function](inputs, dims)
    except KeyError as exc:
        raise _BadReference(f"{exc.args[0]!r} is not defined: {_last_line()}") from exc
    except BaseException as exc:
        raise _BadReference(f"the function failed: {_last_line()}") from exc
    if not isinstance(found, dict):
        raise _BadReference(f"the function returned {type(found).__name__}, not a dict of arrays")
    outputs = {}
    for buffer in plan.mutated:
        if buffer.name not in found:
            raise _BadReference(f"the function returned no {buffer.name!r}")
        array = np.asarray(found[buffer.name])
        if array.shape != buffer.shape:
            raise _BadReference(f"{buffer.name!r} has shape {array.shape}, not {buffer.shape}")
        outputs[buffer.name] = as_wanted(array, buffer.dtype)
    return outputs


def _last_line() -> str:
    lines = [line.strip() for line in traceback.format_exc().splitlines() if line.strip()]
    where = [line for line in lines if line.startswith('File "reference"')]
    return f"{lines[-1]} ({where[-1]})" if where else lines[-1]
