"""Templates with every parameter set to its usual value. Pure."""

from agents.context import StepContext
from agents.replies.constraint_checks import forbidden_by
from warpsmith.domain.templates.space import Configuration, Space
from warpsmith.domain.templates.template import Template


def typical(template: Template, context: StepContext) -> Configuration:
    """The usual value of every parameter; those that have none keep their defaults.

    A value that the constraints forbid on every workload, beside those chosen before it, is replaced by the
    default.
    """
    chosen = dict(template.space.defaults)
    for parameter in template.space.parameters:
        kept = chosen[parameter.name]
        chosen[parameter.name] = parameter.first_value
        if forbidden_by(template.space.constraints, chosen, context):
            chosen[parameter.name] = kept
    return chosen


def fixed(template: Template, configuration: Configuration) -> Template:
    """The template restricted to this one configuration."""
    parameters = tuple(
        p.model_copy(update={"values": (value,), "default": value, "usual": None})
        for p in template.space.parameters
        for value in (configuration[p.name],)
    )
    space = Space(parameters=parameters, constraints=template.space.constraints)
    return template.model_copy(update={"space": space, "warm_starts": ()})
