"""Facts of a kernel's job besides its source, from whoever launches it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from warpsmith.domain.jobs.job import DEFAULT_TOLERANCES
from warpsmith.extensions.scaffold.argument_line import ArgumentLine, with_numbers
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_flow, yaml_number
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_OF_BUFFERS = ("shape", "role", "draw")
_WRITTEN = ("output", "inout")
_REPLACED = {
    "input": _OF_BUFFERS,
    "output": _OF_BUFFERS,
    "inout": _OF_BUFFERS,
    "symbol": ("shape", "draw"),
    "scalar": ("value",),
}
"""Fields of an argument that facts take the place of, besides those that are guesses, by its role."""


@dataclass(frozen=True)
class KnownArgument:
    """Facts about an argument; what is empty is unknown."""

    dtype: str = ""
    """Element type, for an argument whose type the kernel leaves open."""
    shape: tuple[str, ...] = ()
    """Extents as expressions."""
    value: str = ""
    """Value of a number, as an expression."""
    role: str = ""
    draw: Mapping[str, Any] = field(default_factory=dict)
    """Distribution of the elements."""

    def fields(self) -> dict[str, Any]:
        """The facts as fields of a job, without what is unknown."""
        shape = [yaml_number(extent) for extent in self.shape]
        value = yaml_number(self.value)
        found = {"dtype": self.dtype, "role": self.role, "shape": shape, "value": value, "draw": self.draw}
        return {name: given for name, given in found.items() if given not in ("", [], {})}


@dataclass(frozen=True)
class Tunable:
    """A parameter of a search space."""

    name: str
    values: tuple[int | float | bool | str, ...]


@dataclass(frozen=True)
class KnownJob:
    """Facts that take the place of a scaffold's guesses; what is empty is unknown."""

    origin: str = ""
    """Source of the facts, such as the name of a file."""
    entry: str = ""
    workloads: tuple[Mapping[str, int], ...] = ()
    """Dimensions and their sizes, the same names in each."""
    arguments: Mapping[str, KnownArgument] = field(default_factory=dict)
    """By the names of the kernel's arguments and symbols."""
    positions: tuple[KnownArgument, ...] = ()
    """Arguments in the kernel's order, for a launch that does not name them."""
    grid: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    shared_bytes: str = ""
    parameters: tuple[Tunable, ...] = ()
    defaults: Mapping[str, int | float | bool | str] = field(default_factory=dict)
    """A configuration that meets the constraints; empty if the parameters have none."""
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Compile options."""
    atol: float | None = None
    """Absolute tolerance of floats that the kernel writes."""
    remarks: tuple[str, ...] = ()
    """Sentences about facts that could not be taken over."""

    def for_arguments(self, arguments: Sequence[KernelArgument]) -> "KnownJob":
        """The facts by name, for a kernel with these arguments in order."""
        varied = {p.name for p in self.parameters if len(p.values) > 1}
        more = [
            f"{TODO}: {a.name} has one type in a job, and `{a.base}` is a parameter: keep values of one size."
            for a in arguments
            if a.base in varied
        ]
        is_whole = len(self.positions) == len(arguments)
        if not is_whole:
            more.append(f"{TODO}: {self.origin} passes other than the kernel's {len(arguments)} arguments.")
        named = {a.name: known for a, known in zip(arguments, self.positions, strict=False) if is_whole}
        return replace(self, arguments=named | dict(self.arguments), remarks=(*self.remarks, *more))

    def dimensions(self) -> dict[str, tuple[str, int]]:
        """Dimensions and sizes by the argument that holds them, or by their own name if none does."""
        if not self.workloads:
            return {}
        sizes = self.workloads[0]
        held = {n: (a.value, sizes[a.value]) for n, a in self.arguments.items() if a.value in sizes}
        names = {name for name, _ in held.values()}
        return held | {name: (name, size) for name, size in sizes.items() if name not in names}

    def informed(self, line: ArgumentLine, name: str) -> ArgumentLine:
        """The line of an argument with these facts in place of guesses."""
        data = with_numbers(line.fields)
        role = data.get("role", "struct")
        known = self.arguments.get(name, KnownArgument()).fields() if role != "struct" else {}
        told = {f: v for f, v in known.items() if f in line.doubts or f in _REPLACED.get(role, ())}
        if told.get("role", role) == "output":
            told.pop("draw", None)
            data.pop("draw", None)
        elif "draw" not in told and told.get("dtype", "").startswith("float"):
            data.pop("draw", None)  # that of elements which may be indices
        if not told:
            return line
        said = f"{', '.join(told)} as {self.origin} says"
        doubts = {field: words for field, words in line.doubts.items() if field not in told}
        return replace(line, fields=data | told, comment=said, doubts=doubts, is_told=True)

    def tolerances(self, arguments: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Lines with the tolerances of the arguments that the kernel writes."""
        usual = {a["name"]: DEFAULT_TOLERANCES.get(a["dtype"]) for a in arguments if a["role"] in _WRITTEN}
        if self.atol is not None and any(usual.values()):
            yield f"tolerances:  # atol as {self.origin} says"
            yield from (f"  {n}: {{rtol: {t.rtol}, atol: {self.atol}}}" for n, t in usual.items() if t)

    def space(self) -> Iterator[str]:
        """Lines with the parameters and constraints of the search space."""
        if self.parameters:
            yield "parameters:"
        for p in self.parameters:
            fields = {"name": p.name, "values": list(p.values), "default": self.defaults.get(p.name)}
            if p.name not in self.defaults:
                del fields["default"]
            yield f"  - {yaml_flow(fields)}"
        if self.constraints:
            yield "constraints:"
        for expression in self.constraints:
            yield f"  - {yaml_flow({'expression': expression, 'reason': f'restriction of {self.origin}'})}"


def nothing_known(_: KernelDefinition) -> KnownJob:
    """No facts about any kernel."""
    return KnownJob()
