"""`validate`: checks of a job file that need no launch."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.device_checks.absent_devices import absent_device
from warpsmith.device_checks.compile_check import check_compilation
from warpsmith.device_checks.launch_check import launch_check
from warpsmith.device_checks.reference_check import check_reference
from warpsmith.domain.device import Backend, DeviceInfo, is_amd
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job, NumpyReference
from warpsmith.domain.jobs.rewriter import TemplateReport, rewriter
from warpsmith.domain.templates.space import Space
from warpsmith.errors import ChildDied
from warpsmith.job_checks.all_findings import known_findings, unfinished
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import InvalidJob, JobFile, placed
from warpsmith.sandbox.hosts.device_host import Probe, probe_devices
from warpsmith.settings import Settings
from warpsmith.system.temporary_folder import temporary_folder

_GIVEN = re.compile(r"kernel\.(?:cl|hip)(?=:\d)|kernel\.cu(?=[(:]\d)|<source>(?=:\d)")
"""Names under which compilers report the source."""
_NOT_FOR_AMD = (
    "--arch {} is an architecture of AMD, and {} is not compiled for it; use backend hip, or --arch sm_90"
)


@dataclass
class Report:
    """Findings; fields that were not reached are empty."""

    path: Path
    findings: list[Finding] = field(default_factory=list)
    job: Job | None = None
    reference: str = ""
    compiled: str = ""
    launched: str = ""
    own_configurations: str = ""
    template: TemplateReport | None = None
    template_configurations: str = ""

    @property
    def valid(self) -> bool:
        """True if no finding is an error."""
        return not any(f.is_error for f in self.findings)


@dataclass(frozen=True)
class Wishes:
    """Options of a check."""

    settings: Settings
    compiles: bool = False
    """True if the kernel is compiled as well, as it is and as a template, and launched once."""
    arch: str = "sm_90"
    """Architecture of CUDA (`sm_90`) to compile for if no CUDA device is present, or of AMD (`gfx942`)."""
    include_dirs: tuple[Path, ...] = ()
    """Folders searched for headers, besides those that the job file names."""
    probe: Callable[[], Probe] = probe_devices
    """Returns the devices of this machine."""


@temporary_folder()
def validate(path: Path, wishes: Wishes) -> Report:
    """Check a job file."""
    report = Report(path)
    try:
        file = JobFile.read(path, wishes.include_dirs)
    except InvalidJob as exc:
        report.findings += exc.findings
        return report
    try:
        report.job = file.job()
    except InvalidJob as exc:
        report.findings += exc.findings
        report.findings += unfinished(file, {f.line for f in exc.findings})
    else:
        report.findings += unfinished(file)
        _look(report, report.job, wishes)
        _name_source(report, file)
    report.findings = file.located(report.findings)
    return report


def _look(report: Report, job: Job, wishes: Wishes) -> None:
    devices, lacking = _devices(job.kernel.backend, wishes.probe)
    absent = absent_device(job.kernel.backend, wishes.arch)
    known = devices
    if is_amd(wishes.arch):
        if absent is None:
            report.findings.append(
                Finding("kernel.backend", _NOT_FOR_AMD.format(wishes.arch, job.kernel.backend))
            )
            return
        devices, known = (), (absent,)
    scope = known[0].scope() if known else {}
    report.findings += known_findings(job, wishes.settings, known)
    if lacking:
        name = job.kernel.backend.value
        words = f"`tune` cannot run it here: {lacking}; `submit` sends it to a fleet that has {name}"
        report.findings.append(Finding("kernel.backend", words, is_error=False))
    if job.kernel.backend.language.is_recorded:
        return
    _check_reference(report, job, scope)
    if not scope and absent is not None:
        scope = absent.scope()
    _rules(report, job, wishes.settings, scope)
    if wishes.compiles and report.valid:
        _compile_and_launch(report, job, wishes, devices, lacking)


def _check_reference(report: Report, job: Job, scope: Mapping[str, Value]) -> None:
    if not any(f.is_error and f.field.startswith(("workloads", "reference")) for f in report.findings):
        checked = check_reference(job, scope)
        report.reference = checked.note
        report.findings += [checked.finding] if checked.finding else []


def _compile_and_launch(
    report: Report, job: Job, wishes: Wishes, devices: Sequence[DeviceInfo], lacking: str
) -> None:
    template = report.template.template if report.template else None
    compiled = check_compilation(job, template, devices, lacking, wishes.settings, wishes.arch)
    report.compiled = compiled.note
    report.findings += compiled.findings
    if devices and report.valid and compiled.note:
        found = list(launch_check(job, devices[0], wishes.settings))
        report.findings += found
        report.launched = "" if found else "launched once, on the smallest workload: right"


def _devices(backend: Backend, ask: Callable[[], Probe]) -> tuple[Sequence[DeviceInfo], str]:
    """Devices of this machine for a back end, or the reason why there is none."""
    if backend.language.is_recorded:
        return (), ""
    try:
        probe = ask()
    except ChildDied as exc:
        return (), f"asking for devices failed: {exc}"
    found = tuple(d for d in probe.devices if d.backend in backend.runs_on)
    if found:
        return found, ""
    return (), probe.lacking(backend)


def _rules(report: Report, job: Job, settings: Settings, scope: Mapping[str, Value]) -> None:
    report.own_configurations = _count(job, job.space, scope)
    report.template = rewriter().make_template(job, settings.permitted_includes())
    report.template_configurations = _count(job, report.template.template.space, scope)


def _count(job: Job, space: Space, scope: Mapping[str, Value]) -> str:
    from warpsmith.search.spaces.feasible_set import enumerate_space

    names = {n for c in space.constraints for n in c.expression.names}
    if not scope and any(n.startswith("device.") for n in names):
        return "counted on the device, since constraints name device limits"
    feasible = enumerate_space(space, [{**scope, **w.scope()} for w in job.workloads])
    return f"{'' if feasible.exact else 'at least '}{feasible.count}"


def _name_source(report: Report, file: JobFile) -> None:
    """Replace a compiler's name for a source file by the name of that file."""
    name = (file.data.get("kernel") or {}).get("source_file")
    if isinstance(name, str):
        report.findings = [
            replace(f, field="kernel.source_file", message=_GIVEN.sub(lambda _: Path(name).name, f.message))
            if f.field == "kernel.source"
            else f
            for f in report.findings
        ]


def summary(report: Report, *, declined: bool = False) -> Iterator[str]:
    """A valid job in lines; if `declined`, with the reasons why rules do not apply."""
    job = report.job
    if job is None or not report.valid:
        return
    yield f"{job.name}: {job.kernel.backend.value} kernel {job.kernel.entry}, valid"
    for workload in job.workloads:
        yield f"  workload {workload.key} (weight {workload.weight:g})"
    if isinstance(job.reference, NumpyReference) and report.reference:
        yield f"  reference: {report.reference}"
    if report.compiled:
        yield f"  {report.compiled}"
    if report.launched:
        yield f"  {report.launched}"
    if report.own_configurations:
        yield f"  configurations of its own tunables: {report.own_configurations}"
    if report.template is None:
        return
    template = report.template.template
    yield f"  rules that apply: {len(template.applied)}"
    for applied in template.applied:
        made = [
            f"{p.name} ({len(p.values)} values)"
            for p in template.space.parameters
            if p.name in applied.parameters
        ]
        yield f"    {applied.rule}: {', '.join(made) or applied.detail}"
    yield from _declined(report.template, declined)
    yield f"  configurations of the template: {report.template_configurations}"


def _declined(template: TemplateReport, listed: bool) -> Iterator[str]:
    yield f"  rules that do not: {len(template.declined)}{'' if listed else ' (--rules lists why)'}"
    yield from (f"    {rule}" for rule in template.declined if listed)


def as_json(report: Report) -> str:
    """Findings by line, and what would be tuned, as JSON for programs."""
    job, template = report.job, report.template
    found = [f.as_json() for f in report.findings]
    held: dict[str, object] = {"file": str(report.path), "valid": report.valid, "findings": found}
    if job is not None:
        held |= {"name": job.name, "workloads": [w.key for w in job.workloads], "reference": report.reference}
        held |= {"compiled": report.compiled, "own_configurations": report.own_configurations}
    if template is not None:
        held["rules"] = [a.model_dump(mode="json") for a in template.template.applied]
        held["declined"] = [str(d) for d in template.declined]
        held["parameters"] = [p.model_dump(mode="json") for p in template.template.space.parameters]
        held["template_configurations"] = report.template_configurations
    return json.dumps(held, indent=1)


def show(report: Report, *, declined: bool = False) -> None:
    """Print findings to stderr, in the order of the file, and the summary of a valid job to stdout."""
    for finding in report.findings:
        severity = "error" if finding.is_error else "warning"
        echo(f"{severity}: {placed(report.path, finding)}", err=True)
    for line in summary(report, declined=declined):
        echo(line)
