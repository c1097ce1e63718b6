"""Facts of a kernel's job besides its source, from whoever launches it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpsmith.extensions.scaffold.argument_line import ArgumentLine, with_numbers
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_flow, yaml_number
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_OF_BUFFERS = ("shape", "role")
_REPLACED = {
    "input": _OF_BUFFERS,
    "output": _OF_BUFFERS,
    "inout": _OF_BUFFERS,
    "symbol": ("shape",),
    "scalar": ("value",),
}
"""Fields of an argument that facts take the place of, besides its type, by its role."""


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

    def fields(self) -> dict[str, str | int | float | list[str | int | float]]:
        """The facts as fields of a job; a text is empty for what is unknown."""
        shape = [yaml_number(extent) for extent in self.shape]
        return {
            "dtype": self.dtype,
            "shape": shape or "",
            "role": self.role,
            "value": yaml_number(self.value),
        }


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
    remarks: tuple[str, ...] = ()
    """Sentences about facts that could not be taken over."""

    def for_arguments(self, names: Sequence[str]) -> "KnownJob":
        """The facts by name, for a kernel with these arguments in order."""
        if len(self.positions) != len(names):
            return self
        return replace(self, arguments={**dict(zip(names, self.positions, strict=True)), **self.arguments})

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
        known = self.arguments.get(name)
        if known is None or not (known.shape or known.value or known.role):
            return line
        data = with_numbers(line.fields)
        if data.get("role", "struct") == "struct":
            return line
        is_open = data["dtype"] == TODO or (TODO in line.comment and "type" in line.comment)
        replaced = (*_REPLACED.get(data["role"], ()), *(["dtype"] if is_open else []))
        data |= {f: v for f, v in known.fields().items() if v != "" and f in replaced and f in data}
        if data["role"] == "output":
            data.pop("draw", None)
        return replace(line, fields=data, comment=f"as {self.origin} says", is_told=True)

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
