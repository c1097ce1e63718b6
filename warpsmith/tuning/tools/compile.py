"""The tool `compile`: what the compiler says of configurations, and what of them fits on the device."""

from collections.abc import Sequence

from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.templates.outcome import CompileFacts, Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ExpressionError
from warpsmith.tuning.analysis.search_facts import occupancy_of
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.tasks import ToolAnswer
from warpsmith.tuning.tools.workbench import BenchKernel, Workbench, named, refused, told


def compile_(bench: Workbench, template: Template, configurations: Sequence[Configuration]) -> ToolAnswer:
    """Registers, spills, shared memory and occupancy of each, or the compiler's messages."""
    parts, ok = list[str](), True
    for configuration in bench.in_time(configurations, parts):
        built = bench.compile(template, configuration)
        if isinstance(built, Rejected):
            parts.append(refused(configuration, built))
            ok = False
            continue
        parts.append(f"{named(configuration)}: compiles; {_facts(built.compiled.facts)}")
        for words, fits in _launches(bench, template, built):
            parts.append(f"  {words}")
            ok &= fits
    return told(parts, ok)


def _facts(facts: CompileFacts) -> str:
    known = {
        "registers": facts.registers,
        "bytes spilt": facts.spill_bytes,
        "bytes of static shared memory": facts.static_shared_bytes,
        "bytes of local memory": facts.local_bytes,
    }
    said = [f"{value} {name}" for name, value in known.items() if value is not None]
    return ", ".join(said) or f"{facts.binary_bytes} bytes of code; the compiler reports no registers here"


def _launches(bench: Workbench, template: Template, built: BenchKernel) -> list[tuple[str, bool]]:
    """The launch on every workload that the constraints allow, and whether the device takes it."""
    session, found = bench.session, []
    allowed = session.inputs.allowed(template, built.kernel)
    for workload in allowed:
        try:
            size = launch_size(built.kernel, workload, session.info)
            limited = size_within_limits(built.kernel, workload, session.info)
        except ExpressionError as exc:
            found.append((f"{workload.key}: no launch: {exc}", False))
            continue
        if isinstance(limited, Rejected):
            found.append((f"{workload.key}: no launch: {limited.reason}", False))
            continue
        share = occupancy_of(size, built.compiled.facts, session.info)
        grid, block = ("x".join(map(str, extents)) for extents in (size.grid, size.block))
        shared = f"{size.dynamic_bytes} bytes of dynamic shared memory"
        words = f"{workload.key}: {grid} blocks of {block} threads, {shared}"
        found.append((words if share is None else f"{words}, occupancy {share:.0%}", True))
    if not allowed:
        found.append(("its constraints forbid it on every workload", False))
    return found
