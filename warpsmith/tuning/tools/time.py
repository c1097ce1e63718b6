"""The tool `time`: configurations beside the user's kernel, in pairs, as trials are timed."""

from collections.abc import Sequence

from warpsmith.domain.templates.outcome import Measured, Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.objective import steady_times_us
from warpsmith.tuning.tasks import ToolAnswer
from warpsmith.tuning.tools.workbench import Workbench, named, refused, told


def time_(bench: Workbench, template: Template, configurations: Sequence[Configuration]) -> ToolAnswer:
    """Time and speed-up of each on every workload.

    The margin is the half width of the 95 % interval of the user's kernel against itself.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    parts, ok = list[str](), True
    for configuration in bench.in_time(configurations, parts):
        outcome = bench.measure(template, configuration)
        if isinstance(outcome, Measured):
            parts.append(f"{named(configuration)}: {bench.gain(outcome.objective)}")
            parts += _by_workload(bench, outcome)
            continue
        ok = False
        assert isinstance(outcome, Rejected), "nothing prunes it"
        parts.append(refused(configuration, outcome))
    return told(parts, ok)


def _by_workload(bench: Workbench, outcome: Measured) -> list[str]:
    found = []
    for key, us in steady_times_us(bench.session.job, outcome).items():
        before, margin = bench.baseline_us[key], bench.baseline.width_of(key)
        found.append(f"  {key}: {us:.2f} µs against {before:.2f} µs, {before / us:.2f}x, ±{margin:.0%}")
    return found
