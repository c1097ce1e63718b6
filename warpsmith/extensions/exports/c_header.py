"""Generates one C header that returns the kernel to launch for a shape, with every source in it."""

from collections.abc import Mapping
from importlib.resources import files

from jinja2 import Environment

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.expressions import Value
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.c_expressions import c_text
from warpsmith.report.shape_lookup import Lookup, launches_of

BYTES_A_LINE = 20


def c_header(lookup: Lookup, *, guard: str = "WARPSMITH_DISPATCH_H", sources: bool = True) -> str:
    """The header; `ws_pick` in it chooses as `lookup.pick` does.

    Args:
        guard: macro that keeps it from being included twice.
        sources: whether the sources are in it; `entry` of a launch is then an empty text.

    Raises:
        InvalidInput: the job has what a single launch of a single source cannot say.
    """
    _look(lookup)
    job = lookup.job
    scope = lookup.limits.scope()
    own = lookup.own
    names = {**scope, **job.space.defaults}
    kernels = [
        _kernel(
            own.source, own.kernel.entry, job.kernel.launch, own.kernel.of_step(0).local_arguments, (), names
        )
    ]
    for server in lookup.servers:
        (step,) = launches_of(server.entry)
        names = {**scope, **server.configuration}
        source = server.entry.source or ""
        kernels.append(
            _kernel(source, step.entry, step.launch, step.local_arguments, server.constraints, names)
        )
    text = (files("warpsmith.extensions.exports") / "templates" / "dispatch.h.jinja").read_text()
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(text).render(
        guard=guard,
        sources=sources,
        dimensions=lookup.dimensions,
        options=_bytes(" ".join(job.kernel.options)),
        kernels=kernels,
        table=sorted((shape, _number(server)) for shape, server in lookup.table.items()),
        boxes=[(b.low, b.high, b.multiples, _number(b.server)) for b in lookup.boxes],
        checked=[(lookup.shape(c.dimensions), _number(n), round(c.speedup, 3)) for c, n in lookup.checked],
        limits=lookup.limits,
    )


def _look(lookup: Lookup) -> None:
    kernel = lookup.job.kernel
    lacking = {
        "a sequence of launches": bool(kernel.launches),
        "scratch memory": any(s.entry.scratch_arguments or s.entry.launches[1:] for s in lookup.servers),
        "headers of its own": bool(kernel.files or kernel.includes),
        "clusters or cooperative launches": any(
            step.launch.joins_blocks for s in lookup.servers for step in launches_of(s.entry)
        )
        or kernel.launch.joins_blocks,
    }
    found = [what for what, holds in lacking.items() if holds]
    if found:
        raise InvalidInput(
            "--as", f"c cannot hold {' and '.join(found)}; use dispatch.py of the result folder"
        )


def _number(server: int | None) -> int:
    """Index in the header, in which the user's kernel is the first."""
    return 0 if server is None else server + 1


def _kernel(
    source: str,
    entry: str,
    launch: Launch,
    local: tuple[Argument, ...],
    constraints: tuple[Constraint, ...],
    names: Mapping[str, Value],
) -> dict[str, object]:
    return {
        "source": _bytes(source),
        "entry": _bytes(entry),
        "grid": [c_text(e, names) for e in launch.grid],
        "block": [c_text(e, names) for e in launch.block],
        "shared_bytes": c_text(launch.shared_bytes, names),
        "local_bytes": [c_text(a.bytes_expression, names) for a in local],
        "constraints": [c_text(c.expression, names) for c in constraints],
    }


def _bytes(text: str) -> str:
    return byte_text(text.encode() + b"\0")


def byte_text(data: bytes) -> str:
    """Bytes as numbers of a C array: compilers limit the length of a string."""
    numbers = [str(b) for b in data]
    lines = [numbers[i : i + BYTES_A_LINE] for i in range(0, len(numbers), BYTES_A_LINE)]
    return ",\n    ".join(",".join(line) for line in lines)
