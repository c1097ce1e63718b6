"""Generates a self-contained Python module that returns the kernel to launch for a shape."""

import ast
from collections.abc import Mapping
from importlib.resources import files

from jinja2 import Environment

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.expressions import Expression, Value, dotted_name
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint
from warpsmith.report.shape_lookup import Lookup, launches_of


def launcher_source(lookup: Lookup, file_names: Mapping[str, str]) -> str:
    """`dispatch.py` of a bundle; `pick` in it chooses as `lookup.pick` does.

    Args:
        file_names: file names of the tuned sources, by workload.
    """
    scope = lookup.limits.scope()
    own = lookup.job.kernel
    defaults = {**scope, **lookup.job.space.defaults}
    steps = [
        _launch(
            s.entry,
            s.arguments if own.launches else (),
            s.launch,
            own.of_step(n).local_arguments,
            defaults,
        )
        for n, s in enumerate(own.steps)
    ]
    kernels = [_kernel(None, steps, own.scratch, (), defaults)]
    for server in lookup.servers:
        entry = server.entry
        names = {**scope, **server.configuration}
        steps = [
            _launch(s.entry, s.arguments, s.launch, s.local_arguments, names) for s in launches_of(entry)
        ]
        file = file_names[entry.workload]
        kernels.append(_kernel(file, steps, entry.scratch_arguments, server.constraints, names))
    text = (files("warpsmith.report") / "templates" / "dispatch.py.jinja").read_text()
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(text).render(
        dimensions=lookup.dimensions,
        options=own.options,
        kernels=kernels,
        table=sorted((shape, _number(server)) for shape, server in lookup.table.items()),
        boxes=[(b.low, b.high, b.multiples, _number(b.server)) for b in lookup.boxes],
        checked=[(lookup.shape(c.dimensions), _number(n), round(c.speedup, 3)) for c, n in lookup.checked],
        limits=lookup.limits,
    )


def _number(server: int | None) -> int:
    """Index in KERNELS, in which the user's kernel is the first."""
    return 0 if server is None else server + 1


def _kernel(
    file: str | None,
    steps: list[dict[str, object]],
    scratch: tuple[Argument, ...],
    constraints: tuple[Constraint, ...],
    names: Mapping[str, Value],
) -> dict[str, object]:
    return {
        "file": file,
        "steps": steps,
        "scratch_bytes": [python_text(a.bytes_expression, names) for a in scratch],
        "constraints": [python_text(c.expression, names) for c in constraints],
    }


def _launch(
    entry: str,
    arguments: tuple[str, ...],
    launch: Launch,
    local: tuple[Argument, ...],
    names: Mapping[str, Value],
) -> dict[str, object]:
    return {
        "entry": entry,
        "arguments": arguments,
        "grid": [python_text(e, names) for e in launch.grid],
        "block": [python_text(e, names) for e in launch.block],
        "shared_bytes": python_text(launch.shared_bytes, names),
        "cluster": [python_text(e, names) for e in launch.cluster],
        "cooperative": launch.cooperative,
        "local_bytes": [python_text(a.bytes_expression, names) for a in local],
    }


def python_text(expression: Expression, names: Mapping[str, Value]) -> str:
    """An expression as Python, with dimensions read from a mapping `d`.

    Args:
        names: other names in the expression, with their values.
    """
    return ast.unparse(_Bound(names).visit(ast.parse(expression.text, mode="eval")))


class _Bound(ast.NodeTransformer):
    """Replaces names by their values; a name without a value is a dimension."""

    def __init__(self, names: Mapping[str, Value]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value(dotted_name(node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._value(dotted_name(node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(a) for a in node.args], [])

    def _value(self, name: str) -> ast.expr:
        if name in self._names:
            return ast.Constant(self._names[name])
        return ast.Subscript(ast.Name("d", ast.Load()), ast.Constant(name), ast.Load())
