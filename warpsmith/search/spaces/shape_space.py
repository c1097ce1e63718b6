"""A space in which the shape is a parameter: a configuration of it runs on one workload.

Such a template is searched, stored and resumed as any other, and a trial is an evaluation of one
configuration on one workload. On shapes that are no workload of the job nothing is forbidden, so that every
check of a configuration finds it.
"""

from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import SHAPE_PREFIX, Constraint, Parameter, Space, is_shape
from warpsmith.domain.templates.template import Template

REASON = "a trial runs on one workload"


def with_shapes(template: Template, job: Job) -> Template:
    """The template with a parameter for every dimension that differs between the job's workloads.

    Those of a single workload count if there are winners of other shapes.
    """
    alone = len(job.workloads) == 1 and bool(job.known_winners)
    names = job.workloads[0].dimensions
    varying = [n for n in names if alone or len({w.dimensions[n] for w in job.workloads}) > 1]
    if not varying or any(is_shape(p.name) for p in template.space.parameters):
        return template
    parameters = [
        Parameter(
            name=SHAPE_PREFIX + name,
            values=tuple(sorted({w.dimensions[name] for w in job.workloads})),
            default=job.workloads[0].dimensions[name],
            meaning=f"the workload's {name}",
        )
        for name in varying
    ]
    constraints = []
    for workload in job.workloads:
        here = [f"{name} == {workload.dimensions[name]}" for name in varying]
        chosen = [f"{SHAPE_PREFIX}{condition}" for condition in here]
        text = f"not ({' and '.join(here)}) or ({' and '.join(chosen)})"
        constraints.append(Constraint(expression=Expression(text), reason=REASON))
    space = Space(
        parameters=(*template.space.parameters, *parameters),
        constraints=(*template.space.constraints, *constraints),
    )
    return template.model_copy(update={"space": space})
