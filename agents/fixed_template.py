"""Templates with every parameter set to its usual value. Pure."""

import re

from agents.constraint_checks import forbidden_by
from agents.context import StepContext
from warpsmith.domain.space import Configuration, Parameter, ParameterValue, Space
from warpsmith.domain.template import Template

USUAL: dict[str, int] = {
    "WS_BLOCK": 256,
    "WS_BLOCK_X": 32,
    "WS_BLOCK_Y": 8,
    "WS_VEC": 4,
    "WS_ITEMS": 4,
    "WS_ITEMS_X": 2,
    "WS_ITEMS_Y": 4,
    "WS_UNROLL": 4,
    "WS_ROWS": 2,
    "WS_ROW_SPLIT": 2,
    "WS_FAST_MATH": 1,
}
"""Values that one would write without measuring, by parameter name."""


def typical(template: Template, context: StepContext) -> Configuration:
    """The usual value of every parameter that a rule introduced; the user's own parameters keep their
    defaults.

    A value that the constraints forbid on every workload is replaced by the default.
    """
    own = {p.name for p in context.job.parameters}
    chosen = dict(template.space.defaults)
    for parameter in template.space.parameters:
        if parameter.name in own:
            continue
        kept = chosen[parameter.name]
        chosen[parameter.name] = _usual(parameter)
        if forbidden_by(template.space.constraints, chosen, context):
            chosen[parameter.name] = kept
    return chosen


def fixed(template: Template, configuration: Configuration) -> Template:
    """The template restricted to this one configuration."""
    parameters = tuple(
        p.model_copy(update={"values": (configuration[p.name],), "default": configuration[p.name]})
        for p in template.space.parameters
    )
    space = Space(parameters=parameters, constraints=template.space.constraints)
    return template.model_copy(update={"space": space, "warm_starts": ()})


def _usual(parameter: Parameter) -> ParameterValue:
    # The parameters of a launch of a sequence end in its number.
    wanted = USUAL.get(re.sub(r"_\d+$", "", parameter.name))
    numbers = [v for v in parameter.values if isinstance(v, int) and not isinstance(v, bool)]
    if len(numbers) < len(parameter.values):
        return parameter.baseline_value
    if wanted is None:  # a constant that was lifted: the next larger value
        default = parameter.baseline_value
        assert isinstance(default, int)
        return min((v for v in numbers if v > default), default=default)
    below = [v for v in numbers if v <= wanted]
    return max(below) if below else min(numbers)
