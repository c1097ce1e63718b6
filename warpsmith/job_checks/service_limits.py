"""Requirements of a service beyond the form of a job: supported features and the operator's limits."""

from collections.abc import Iterator

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.options import refused_options
from warpsmith.job_files.finding import Finding
from warpsmith.settings import Settings


def service_findings(job: Job, settings: Settings) -> Iterator[Finding]:
    """Findings for everything that a service with these settings refuses."""
    kernel = job.kernel
    if kernel.backend.language.is_recorded:
        yield from _replay(job, settings)
    if kernel.source is None:
        words = "the service reads no files; send the text as kernel.source"
        yield Finding("kernel.source_file", words)
    for place, argument in kernel.placed():
        if argument.draw is not None and argument.draw.file is not None and argument.draw.data is None:
            words = "the service reads no files; send the file in base64 as draw.data"
            yield Finding(f"kernel.{place}.draw.file", words)
    permitted = settings.permitted_includes()
    for index, name in enumerate(kernel.includes):
        if name not in permitted:
            known = ", ".join(sorted(permitted)) or "none"
            words = f"{name!r} is not permitted by the operator; permitted: {known}"
            yield Finding(f"kernel.includes.{index}", words)
    for index, option in enumerate(kernel.options):
        for words in refused_options(kernel.backend, [option]).values():
            yield Finding(f"kernel.options.{index}", f"{option!r} {words}")
    yield from _agents(job, settings)


def _agents(job: Job, settings: Settings) -> Iterator[Finding]:
    chosen = [("agents.provider", job.agents.provider)]
    chosen += [(f"agents.roles.{role}", name) for role, name in job.agents.roles.items()]
    for field, name in chosen:
        if name == "openai" and settings.openai_base_url is None:
            words = "the operator has configured no model; use rules or external"
            yield Finding(field, words)
        elif name == "openai" and job.budget.tokens == 0:
            words = f"is 0, so {field} can never call a model; set a budget"
            yield Finding("budget.tokens", words)


def _replay(job: Job, settings: Settings) -> Iterator[Finding]:
    if settings.replay_dir is None:
        words = "replay serves recorded timings for tests, and the operator has not enabled it; "
        yield Finding("kernel.backend", words + "use cuda or opencl")
    if job.kernel.launches:
        yield Finding("kernel.launches", "a recording has a single launch; use entry and launch")
    if job.rewrite.enabled:
        yield Finding("rewrite.enabled", "set it to false: no source is read with back end replay")
