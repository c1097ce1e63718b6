"""Checks whether a job's workloads leave a configuration any use."""

from agents.context import StepContext
from warpsmith.domain.templates.space import Configuration, Constraint, allows
from warpsmith.errors import ExpressionError


def forbidden_by(
    constraints: tuple[Constraint, ...], configuration: Configuration, context: StepContext
) -> str:
    """A constraint that forbids the configuration on every workload; empty if one workload allows it.

    Returns:
        The constraint's text, quoted, or why it cannot be evaluated.
    """
    device = context.baseline.device.scope() if context.baseline is not None else {}
    broken = ""
    for workload in context.job.workloads:
        try:
            first = allows(constraints, {**device, **workload.scope(), **configuration})
        except ExpressionError as exc:
            broken = str(exc)
            continue
        if first is None:
            return ""
        broken = repr(first.expression.text)
    return broken
