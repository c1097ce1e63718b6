"""Generates one C header that returns the kernel to launch for a shape, with every source in it."""

from collections.abc import Mapping

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.expressions import Value
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint
from warpsmith.extensions.exports.c_expressions import c_text
from warpsmith.extensions.exports.format_limits import has_scratch, joins_blocks, refuse_lacking
from warpsmith.extensions.exports.rendering import byte_text, rendered
from warpsmith.report.shape_lookup import Lookup, launches_of


def c_header(lookup: Lookup, *, guard: str = "WARPSMITH_DISPATCH_H", sources: bool = True) -> str:
    """The header; `ws_pick` in it chooses as `lookup.pick` does.

    Args:
        guard: macro that keeps it from being included twice.
        sources: whether the sources are in it; `entry` of a launch is then an empty text.

    Raises:
        InvalidInput: the job has what a single launch of a single source cannot say.
    """
    job = lookup.job
    lacking = {
        "a sequence of launches": bool(job.kernel.launches),
        "scratch memory": has_scratch(lookup),
        "headers of its own": bool(job.kernel.files or job.kernel.includes),
        "clusters or cooperative launches": joins_blocks(lookup),
    }
    refuse_lacking(lacking, "c", "dispatch.py of the result folder")
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
    values = {
        "guard": guard,
        "sources": sources,
        "dimensions": lookup.dimensions,
        "options": _bytes(" ".join(job.kernel.options)),
        "kernels": kernels,
        "table": sorted((shape, _number(server)) for shape, server in lookup.table.items()),
        "boxes": [(b.low, b.high, b.multiples, _number(b.server)) for b in lookup.boxes],
        "checked": [(lookup.shape(c.dimensions), _number(n), round(c.speedup, 3)) for c, n in lookup.checked],
        "limits": lookup.limits,
    }
    return rendered("dispatch.h.jinja", values)


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
