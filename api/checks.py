"""What a job must keep to beyond its own form: what this service supports and permits."""

from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job
from warpsmith.domain.options import refused_options
from warpsmith.errors import InvalidInput
from warpsmith.settings import Settings


def check_job(job: Job, settings: Settings) -> None:
    """Raises InvalidInput for the first field that this service cannot accept."""
    kernel = job.kernel
    if kernel.backend is Backend.HIP:
        raise InvalidInput("kernel.backend", "hip is not supported yet; use cuda or opencl")
    if kernel.backend is Backend.REPLAY:
        _check_replay(job, settings)
    if kernel.source is None:
        raise InvalidInput("kernel.source_file", "the service reads no files; send the text as kernel.source")
    permitted = settings.permitted_includes()
    for index, name in enumerate(kernel.includes):
        if name not in permitted:
            known = ", ".join(sorted(permitted)) or "none"
            raise InvalidInput(
                f"kernel.includes.{index}", f"{name!r} is not permitted by the operator; permitted: {known}"
            )
    for index, option in enumerate(kernel.options):
        refused = refused_options(kernel.backend, [option])
        if refused:
            raise InvalidInput(f"kernel.options.{index}", f"{option!r} {refused[option]}")
    _check_agents(job, settings)


def _check_agents(job: Job, settings: Settings) -> None:
    chosen = [("agents.provider", job.agents.provider)]
    chosen += [(f"agents.roles.{role}", name) for role, name in job.agents.roles.items()]
    for field, name in chosen:
        if name == "openai" and settings.openai_base_url is None:
            raise InvalidInput(field, "the operator has configured no model; use rules or external")
        if name == "openai" and job.budget.tokens == 0:
            raise InvalidInput("budget.tokens", f"is 0, so {field} can never call a model; set a budget")


def _check_replay(job: Job, settings: Settings) -> None:
    if settings.replay_dir is None:
        words = "replay serves recorded timings for tests, and the operator has not enabled it; "
        raise InvalidInput("kernel.backend", words + "use cuda or opencl")
    if job.rewrite.enabled:
        raise InvalidInput("rewrite.enabled", "set it to false: no source is read with back end replay")
