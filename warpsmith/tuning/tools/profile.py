"""The tool `profile`: one configuration's time, what bounds it, and the counters behind that."""

from collections.abc import Callable

from warpsmith.domain.templates.outcome import Measured, Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.tasks import Counters, ToolAnswer
from warpsmith.tuning.timing.hardware_counters import counters_of
from warpsmith.tuning.tools.workbench import Workbench, named, refused, told

Interpret = Callable[[Template, Configuration, Measured, Counters], list[str]]
"""Says in lines what bounds a measured configuration, from its times and counters."""


def profile(
    bench: Workbench, template: Template, configuration: Configuration, interpret: Interpret
) -> ToolAnswer:
    """The diagnosis first, then the figures that it rests on.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    outcome = bench.measure(template, configuration)
    if isinstance(outcome, Rejected):
        return told([refused(configuration, outcome)], ok=False)
    assert isinstance(outcome, Measured), "nothing prunes it"
    counters = counters_of(bench.session, template, configuration, outcome.timings)
    parts = [f"{named(configuration)}: {bench.gain(outcome.objective)}"]
    parts += interpret(template, configuration, outcome, counters)
    parts += [f"  {name} = {value:.6g}" for name, value in counters.values.items()]
    if counters.missing:
        parts.append(f"  {counters.missing}")
    return told(parts)
