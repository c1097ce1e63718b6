"""Drawn spellings of the kernels of `plain_kernels`, and whether rules make the same of two spellings.

The list of what people spell otherwise was written down before anything was measured. No transformation knows
how rules read a kernel: a spelling is made from the text by a grammar. Every spelling computes what the plain
one does, so equal rules and equal parameters are wanted for it.
"""

from collections.abc import Callable
from random import Random

from testbed.kernels.kernel_kinds import Kind
from testbed.kernels.kernel_styles import STYLES, written
from testbed.kernels.spelling_conditions import (
    branch_for_choice,
    return_early,
    spell_braces,
    turn_comparisons,
)
from testbed.kernels.spelling_indices import (
    add_to_pointers,
    cast_coordinates,
    commute_indices,
    compare_without_sign,
    define_coordinates,
    define_indices,
    name_coordinates,
    name_indices,
    name_parts_of_indices,
    point_at_rows,
    widen_products,
)
from testbed.kernels.spelling_steps import (
    declare_counters_before,
    define_steps,
    inline_locals,
    loop_by_while,
    name_loads,
    plain_assignments,
    spell_increments,
    spell_steps,
    wrap_in_parentheses,
)
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import ParameterValue
from warpsmith.extensions.rules.templater import make_template

Transformation = Callable[[str, Random], str]
"""Another spelling of a kernel's text; the text itself where there is nothing to change."""


TRANSFORMATIONS: tuple[Transformation, ...] = (
    commute_indices,
    turn_comparisons,
    return_early,
    loop_by_while,
    declare_counters_before,
    spell_steps,
    spell_increments,
    add_to_pointers,
    point_at_rows,
    name_indices,
    name_parts_of_indices,
    inline_locals,
    name_coordinates,
    define_indices,
    define_coordinates,
    define_steps,
    cast_coordinates,
    widen_products,
    compare_without_sign,
    plain_assignments,
    wrap_in_parentheses,
    spell_braces,
    name_loads,
    branch_for_choice,
)
MOST = 8
"""Transformations of one spelling."""


def plain_job(base: Kind, backend: str) -> Job:
    """The job of a base kernel as it is written here."""
    return written(base, STYLES[0], "as written", backend).job


def spelt_job(base: Kind, backend: str, source: str) -> Job:
    """The job of a base kernel with another text."""
    job = plain_job(base, backend)
    return job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": source})})


def respelt(text: str, rng: Random) -> str:
    """One to eight transformations in a drawn order, each at some of its places."""
    for transformation in rng.sample(TRANSFORMATIONS, rng.randint(1, MOST)):
        text = transformation(text, rng)
    return text


def spelling(base: Kind, backend: str, rng: Random) -> str:
    """A drawn spelling of a base kernel."""
    return respelt(plain_job(base, backend).kernel.text, rng)


def outline(job: Job) -> tuple[list[str], dict[str, tuple[ParameterValue, ...]]]:
    """Rules that apply, by name, and the values of the parameters of the template."""
    template = make_template(job).template
    rules = sorted({a.rule for a in template.applied})
    return rules, {p.name: p.values for p in template.space.parameters}


def same_template(base: Job, spelt: Job) -> bool:
    """Whether rules make the same of two jobs: the same rules apply and the same values can be chosen."""
    return outline(base) == outline(spelt)
