"""Definitions, workloads and solutions of FlashInfer-Bench (trace schema of 0.1) as facts for a job file."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from warpsmith.domain.dtype import Dtype
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.known import KnownArgument, KnownJob
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_MOST_WORKLOADS = 64
"""Limit of a job's form."""
_USUAL_SIZE = 1024


class _DefinitionAxis(BaseModel):
    type: Literal["const", "var"]
    value: int | None = None


class _DefinitionTensor(BaseModel):
    shape: list[str] | None
    dtype: str


class OperatorDefinition(BaseModel):
    """Fields of an operator's definition that a job takes over."""

    name: str
    axes: dict[str, _DefinitionAxis]
    inputs: dict[str, _DefinitionTensor]
    outputs: dict[str, _DefinitionTensor]
    reference: str
    constraints: list[str] = Field(default_factory=list)


class _Input(BaseModel):
    type: str
    value: int | float | bool | None = None


class _TraceWorkload(BaseModel):
    axes: dict[str, int]
    inputs: dict[str, _Input] = Field(default_factory=dict)


class _Trace(BaseModel):
    definition: str = ""
    workload: _TraceWorkload


class _Spec(BaseModel):
    language: str
    entry_point: str = ""


class _SourceFile(BaseModel):
    path: str
    content: str


class Solution(BaseModel):
    """Fields of a solution that a job takes over: its language and sources."""

    name: str
    definition: str
    spec: _Spec
    sources: list[_SourceFile]


@dataclass(frozen=True)
class Bench:
    """Files of FlashInfer-Bench about one operator."""

    definition: OperatorDefinition
    workloads: tuple[_TraceWorkload, ...] = ()
    origin: str = ""


def read_json(path: Path) -> OperatorDefinition | Solution:
    """A definition or a solution.

    Raises:
        InvalidInput: the file is neither; the message names the fields that are wrong.
    """
    text = path.read_text(errors="replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput("source", f"{path.name} is no JSON: {exc}") from exc
    if not isinstance(data, dict) or not {"axes", "sources"} & data.keys():
        raise InvalidInput(
            "source",
            f"{path.name} is neither a definition nor a solution of FlashInfer-Bench: no axes, no sources",
        )
    kind: type[OperatorDefinition] | type[Solution] = OperatorDefinition if "axes" in data else Solution
    try:
        return kind.model_validate(data)
    except ValidationError as exc:
        raise InvalidInput("source", f"{path.name}: {_first(exc)}") from exc


def read_workloads(path: Path, definition: str) -> tuple[_TraceWorkload, ...]:
    """The workloads of a definition in a file of traces, one JSON object a line.

    Raises:
        InvalidInput: a line is no trace, or none is of this definition.
    """
    found: list[_TraceWorkload] = []
    others: set[str] = set()
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            trace = _Trace.model_validate_json(line)
        except ValidationError as exc:
            raise InvalidInput("source", f"{path.name}:{number}: {_first(exc)}") from exc
        if trace.definition in ("", definition):
            found.append(trace.workload)
        else:
            others.add(trace.definition)
    if not found:
        there = ", ".join(sorted(others)) or "nothing"
        raise InvalidInput("source", f"{path.name} has no workload of {definition}; it has {there}")
    return tuple(found)


def known_job(bench: Bench, kernel: KernelDefinition) -> KnownJob:
    """The definition's facts for a kernel: the tensors that its arguments are, sizes and values."""
    definition = bench.definition
    tensors = {**definition.inputs, **definition.outputs}
    remarks = list(_remarks(bench))
    arguments: dict[str, KnownArgument] = {}
    pairs = dict(_pairs([a.name for a in kernel.arguments if a.is_pointer and a.pointers == 1], tensors))
    lower = {axis.lower(): axis for axis in definition.axes}
    for a in kernel.arguments:
        name = pairs.get(a.name) if a.is_pointer else _match(a.name, tensors)
        if name is not None:
            arguments[a.name] = _argument(bench, name, tensors[name])
        elif not a.is_pointer and a.name.lower() in lower:
            arguments[a.name] = KnownArgument(value=lower[a.name.lower()])
    missing = [n for n, t in tensors.items() if t.shape is not None and n not in pairs.values()]
    if missing:
        remarks.append(
            f"{bench.origin} has {', '.join(missing)}, which no argument of the kernel has the name of."
        )
    return KnownJob(bench.origin, workloads=_workloads(bench), arguments=arguments, remarks=tuple(remarks))


def _pairs(pointers: Sequence[str], tensors: Mapping[str, _DefinitionTensor]) -> Iterator[tuple[str, str]]:
    """Pointer arguments with their tensors: by name, else in order if there are as many."""
    shaped = [name for name, tensor in tensors.items() if tensor.shape is not None]
    named = {p: match for p in pointers if (match := _match(p, {n: tensors[n] for n in shaped})) is not None}
    rest = [p for p in pointers if p not in named]
    left = [name for name in shaped if name not in named.values()]
    yield from named.items()
    if len(rest) == len(left):
        yield from zip(rest, left, strict=True)


def _match(name: str, tensors: Mapping[str, _DefinitionTensor]) -> str | None:
    plain = _plain(name)
    return next((own for own in tensors if _plain(own) == plain), None)


def _plain(name: str) -> str:
    text = name.lower().strip("_")
    for ending in ("_ptr", "_data", "_buffer"):
        text = text.removesuffix(ending)
    return text.removeprefix("d_").removeprefix("p_").replace("_", "")


def _argument(bench: Bench, name: str, tensor: _DefinitionTensor) -> KnownArgument:
    dtype = tensor.dtype if tensor.dtype in set(Dtype) else ""
    role = "output" if name in bench.definition.outputs else "input"
    if tensor.shape is None:
        values = _values(bench, name)
        value = values.pop() if len(values) == 1 else None
        return KnownArgument(dtype, value="" if value is None else str(value))
    return KnownArgument(dtype, tuple(tensor.shape) or ("1",), role=role)


def _values(bench: Bench, name: str) -> set[int | float | bool | None]:
    """The values that the workloads give an input."""
    return {w.inputs[name].value for w in bench.workloads if name in w.inputs}


def _workloads(bench: Bench) -> tuple[dict[str, int], ...]:
    axes = bench.definition.axes
    found: list[dict[str, int]] = []
    for own in [w.axes for w in bench.workloads] or [{}]:
        sizes = {n: a.value if a.value is not None else own.get(n, _USUAL_SIZE) for n, a in axes.items()}
        if sizes not in found and all(size > 0 for size in sizes.values()):
            found.append(sizes)
    return tuple(found[:_MOST_WORKLOADS]) or ({"n": _USUAL_SIZE},)


def _remarks(bench: Bench) -> Iterable[str]:
    definition = bench.definition
    if not bench.workloads:
        variable = [n for n, a in definition.axes.items() if a.value is None]
        if variable:
            names = ", ".join(variable)
            yield f"TODO: sizes of {names}: {bench.origin} leaves them to workloads (a .jsonl file)."
    stored = {n for w in bench.workloads for n, given in w.inputs.items() if given.type == "safetensors"}
    if stored:
        names = ", ".join(sorted(stored))
        yield f"Values of {names} are files of the data set; here they are drawn at random."
    scalars = [n for n, t in definition.inputs.items() if t.shape is None]
    several = [n for n in scalars if len(_values(bench, n)) > 1]
    if several:
        names = ", ".join(several)
        yield f"TODO: the workloads give several values of {names}; a job has one for all workloads."
    yield from _of_definition(definition)


def _of_definition(definition: OperatorDefinition) -> Iterable[str]:
    """Remarks on conditions and reference of a definition."""
    for constraint in definition.constraints:
        yield f"Sizes of {definition.name} meet: {constraint}"
    yield f"The reference of {definition.name} is PyTorch; `reference` of a job is the same in NumPy:"
    yield from (f"  {line}" for line in definition.reference.strip().splitlines())


def _first(exc: ValidationError) -> str:
    error = exc.errors()[0]
    return f"{'.'.join(map(str, error['loc'])) or 'the line'}: {error['msg']}"
