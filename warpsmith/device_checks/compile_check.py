"""Compiles a job's kernel as it is and as its template, in a throw-away child and without a launch."""

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from warpsmith.device_checks.absent_devices import absent_device
from warpsmith.domain.device import DeviceInfo, is_amd
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts, Rejected
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, Unavailable
from warpsmith.job_files.finding import Finding
from warpsmith.sandbox.hosts.device_host import Probe, probe_devices
from warpsmith.settings import Settings
from warpsmith.source.lexing.conditionals import given_macros
from warpsmith.system.temporary_folder import temporary_folder
from warpsmith.tuning.execution.variants import submit

if TYPE_CHECKING:
    from warpsmith.sandbox.hosts.compile_host import CompilePool

_PLACES = (
    re.compile(r"(?:kernel\.cl|kernel\.cu|kernel\.hip|<source>):(\d+)(?::\d+)?:"),
    re.compile(r"kernel\.cu\((\d+)\)"),
)
_UNDECLARED = re.compile(r"""undeclared identifier '([A-Z]\w*)'|identifier "([A-Z]\w*)" is undefined""")
_OF_TOOLKIT = re.compile(
    r"error: (?:qualified name is not allowed|(?:namespace|class) .* has no member .*)\n.*"
)
_CRASHED = "the compiler crashed"
_NO_ENTRY = re.compile(r"no kernel '")
_NO_ARCHITECTURE = re.compile(r"clang \S+ knows no |'[^']*' is no architecture ")


@dataclass(frozen=True)
class CompileCheck:
    """Result of a compilation."""

    note: str
    findings: tuple[Finding, ...] = ()


def check_compilation(
    job: Job,
    template: Template | None,
    devices: Sequence[DeviceInfo],
    lacking: str,
    settings: Settings,
    arch: str,
) -> CompileCheck:
    """Compile with the defaults of all parameters.

    Args:
        devices: devices of the job's back end. CUDA and HIP need none and are then compiled for `arch`.
        lacking: the reason why there is no device.
        arch: architecture of CUDA (`sm_90`) or of AMD (`gfx942`).
    """
    from warpsmith.sandbox.hosts.compile_host import CompilePool

    device = devices[0] if devices else absent_device(job.kernel.backend, arch)
    if device is None:
        return CompileCheck("", (Finding("kernel.backend", f"not compiled: {lacking}", is_error=False),))
    own = _own(job)
    pool = CompilePool(1, settings.compile_timeout_s, settings.permitted_includes())
    try:
        found = submit(pool, own, job.workloads, device).result()
        if isinstance(found, Rejected):
            return CompileCheck("", (_rejected(found, own),))
        note = _note(device, found.facts)
        if template is None or not template.applied:
            return CompileCheck(note)
        of_rules = submit(pool, _defaults(template), job.workloads, device).result()
    except (ChildDied, Unavailable) as exc:
        return CompileCheck("", (Finding("kernel.backend", f"not compiled: {exc}", is_error=False),))
    finally:
        pool.close()
    if isinstance(of_rules, Rejected):
        rules = ", ".join(a.rule for a in template.applied)
        words = f"the kernel compiles, but the template that the rules make of it does not ({rules}): "
        fix = "; a fault of ours; rewrite.deny takes the names of rules"
        return CompileCheck(note, (Finding("rewrite", words + of_rules.reason + fix, is_error=False),))
    of_template = f" ({_resources(of_rules.facts)})" if is_amd(device.architecture) else ""
    return CompileCheck(f"{note}, and so is its template{of_template}")


def _note(device: DeviceInfo, facts: CompileFacts) -> str:
    if not is_amd(device.architecture):
        return f"compiled for {device.name}"
    return f"compiled for {device.name}; not run on AMD hardware ({_resources(facts)})"


def _resources(facts: CompileFacts) -> str:
    return (
        f"{facts.registers} vector registers, {facts.static_shared_bytes} bytes of LDS, "
        f"{facts.spill_bytes} bytes of registers spilled"
    )


@dataclass
class JobCompiler:
    """Compiles jobs' own kernels: of OpenCL for a device of this machine, of CUDA for an architecture.

    A context, with the temporary folder of the compiler's child; its end ends both.
    """

    settings: Settings
    arch: str = "sm_90"
    probe: Callable[[], Probe] = probe_devices
    _last: tuple[Job, Compiled | Rejected | None] | None = None
    _held: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "JobCompiler":
        self._held.enter_context(temporary_folder())
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def __call__(self, job: Job) -> Compiled | Rejected | None:
        """The kernel with the defaults of its parameters; None if nothing here can compile it."""
        if self._last is None or self._last[0] != job:
            self._last = (job, self._compiled(job))
        return self._last[1]

    def problem(self, job: Job) -> str | None:
        """Reason why a job's kernel does not compile; empty if it does, None if nothing here can tell."""
        found = self(job)
        if not isinstance(found, Rejected):
            return None if found is None else ""
        return _rejected(found, _own(job)).message

    @cached_property
    def _pool(self) -> "CompilePool":
        from warpsmith.sandbox.hosts.compile_host import CompilePool

        pool = CompilePool(1, self.settings.compile_timeout_s, self.settings.permitted_includes())
        self._held.callback(pool.close)
        return pool

    @cached_property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices of this machine; none if a driver crashed."""
        try:
            return tuple(self.probe().devices)
        except ChildDied:
            return ()

    def _compiled(self, job: Job) -> Compiled | Rejected | None:
        return self.of_template(Template(kernel=job.kernel, space=job.space), job.workloads)

    def of_template(
        self, template: Template, workloads: Sequence[Workload] = ()
    ) -> Compiled | Rejected | None:
        """A template with its defaults; None if nothing here can compile it."""
        device = absent_device(template.kernel.backend, self.arch)
        if device is None:
            device = next((d for d in self.devices if d.backend is template.kernel.backend), None)
        if device is None:
            return None
        try:
            found = submit(self._pool, _defaults(template), workloads, device).result()
        except (ChildDied, Unavailable):
            return None
        return None if isinstance(found, Rejected) and found.reason.startswith(_CRASHED) else found


def _defaults(template: Template) -> ConfiguredKernel:
    return template.configured(template.space.defaults)


def _own(job: Job) -> ConfiguredKernel:
    return _defaults(Template(kernel=job.kernel, space=job.space))


def _rejected(found: Rejected, configured: ConfiguredKernel) -> Finding:
    if found.reason.startswith(_CRASHED):
        # A missing compiler and one that a source crashed end in the same way.
        _, missing, words = found.log.strip().rpartition("errors.Unavailable: ")
        said = words[:500] if missing else f"{found.reason}: {words[:500]}"
        return Finding("kernel.backend", f"not compiled: {said}", is_error=False)
    if _NO_ENTRY.match(found.reason):
        return Finding("kernel.entry", found.reason)
    if _NO_ARCHITECTURE.match(found.reason):
        return Finding("kernel.backend", f"--arch: {found.reason}")
    place = next((m for p in _PLACES if (m := p.search(found.reason))), None)
    macro = _UNDECLARED.search(found.reason)
    name = (macro.group(1) or macro.group(2)) if macro else ""
    hint = (
        f"; if the host program defines it, add -D{name}=... to kernel.options, or a parameter of that name"
        if name
        else _other_toolkit(found.log)
    )
    line = int(place.group(1)) if place else None
    return Finding(
        "kernel.source",
        f"does not compile: {found.reason.removeprefix('error: ')}{hint or _macros(configured, line)}",
        inner_line=line,
    )


def _macros(configured: ConfiguredKernel, line: int | None) -> str:
    """A hint if a line of the source has macros, which may replace other names than they should."""
    lines = configured.kernel.text.splitlines()
    words = re.findall(r"\w+", lines[line - 1]) if line and line <= len(lines) else []
    given = given_macros(configured.kernel.options) | configured.defines
    stands = ", ".join(f"{w!r} stands for {given[w]}" for w in dict.fromkeys(words) if w in given)
    return f"; in this line the macro {stands}" if stands else ""


def _other_toolkit(log: str) -> str:
    """A hint if a source names something of CUDA's own C++ libraries that they do not have here."""
    from warpsmith.backends.cuda.toolkit import cccl_version

    found = _OF_TOOLKIT.search(log)
    names = re.findall(r"\b(?:cuda|cub|thrust)::[\w:]+", found.group()) if found else []
    if not names or not (version := cccl_version()):
        return ""
    return (
        f"; the toolkit of this machine has CCCL {version}, which may be older than `{names[0]}`: CUDA_HOME "
        "names another toolkit, or kernel.includes a folder of the operator with another CCCL"
    )
