"""Runs the user's NumPy reference: confined, on float64 copies of the inputs, away from any candidate."""

import traceback
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.jobs.by_value_plan import ValuePlan, given_values
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, WorkloadPlan
from warpsmith.sandbox.confinement.confine import Confinement, confine, memory_limit
from warpsmith.sandbox.memory.reference_arrays import DeviceArrays, HostArrays, ReferenceArrays
from warpsmith.sandbox.transport.child import keep_freed_memory, take_channel
from warpsmith.sandbox.transport.messages import plan_from_json
from warpsmith.sandbox.transport.process import system_paths


class _BadReference(Exception):
    """An error in the user's reference."""


def main(argument: dict[str, Any]) -> None:
    """Answer requests, each in a namespace of its own, until the parent closes the pipe."""
    channel = take_channel()
    keep_freed_memory()
    index = argument.get("device")
    most = memory_limit(int(argument["memory_bytes"]))
    private = Path(argument["private"])
    kernels = Path(argument["kernels"]) if argument.get("kernels") else None
    arrays: ReferenceArrays = HostArrays() if index is None else DeviceArrays(int(index), kernels)
    _confine(private, most, on_device=index is not None, kernels=kernels)
    while True:
        request, blobs = channel.receive()
        plan = plan_from_json(request["plan"])
        try:
            outputs = _compute(arrays, bytes(blobs[0]).decode(), request["function"], plan, request["dims"])
        except _BadReference as exc:
            channel.send({"error": str(exc)[:1500]})
            continue
        except MemoryError as exc:
            channel.send({"error": f"too large for a reference process: {exc}"[:1500]})
            continue
        finally:
            arrays.done()
        names = [b.name for b in plan.mutated]
        channel.send({"names": names}, [outputs[n].data.cast("B") for n in names])


def _confine(private: Path, memory_bytes: int, *, on_device: bool, kernels: Path | None = None) -> None:
    """Give up what a reference has no need of; a driver's files were opened before.

    What a device's libraries read later are their own files, and entries of /proc.
    """
    read, devices = [*system_paths()], [Path("/dev/null")]
    if on_device:
        read += [Path("/proc"), Path("/etc"), Path("/run")]
        read += [] if kernels is None else [kernels]
        devices += Path("/dev").glob("nvidia*")
    confine(
        Confinement(
            read=tuple(read),
            write=(private,),
            devices=tuple(devices),
            # A driver reserves far more of the address space than it uses.
            memory_bytes=None if on_device else memory_bytes,
            data_bytes=memory_bytes if on_device else None,
            forks=False,
        )
    )


def _compute(
    arrays: ReferenceArrays, source: str, function: str, plan: WorkloadPlan, dims: dict[str, int]
) -> dict[str, NDArray[Any]]:
    inputs: dict[str, Any] = {}
    for argument in (*plan.arguments, *plan.behind):
        if isinstance(argument, ScalarPlan):
            inputs[argument.name] = argument.value
        elif isinstance(argument, ValuePlan):
            inputs[argument.name] = given_values(argument)
        elif isinstance(argument, BufferPlan) and argument.role is not Role.OUTPUT:
            drawn = arrays.input(argument, plan.seed, plan.variant, plan.family)
            inputs[argument.name] = drawn.reshape(argument.shape)
    names = arrays.globals()
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
        array = arrays.array(found[buffer.name])
        if array.shape != buffer.shape:
            raise _BadReference(f"{buffer.name!r} has shape {array.shape}, not {buffer.shape}")
        outputs[buffer.name] = arrays.wanted(array, buffer.dtype)
    return outputs


def _last_line() -> str:
    lines = [line.strip() for line in traceback.format_exc().splitlines() if line.strip()]
    where = [line for line in lines if line.startswith('File "reference"')]
    return f"{lines[-1]} ({where[-1]})" if where else lines[-1]
