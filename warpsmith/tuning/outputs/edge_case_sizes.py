"""Sizes of the outputs of an edge case, by which they are judged."""

from warpsmith.domain.jobs.plan import Family
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.expected_outputs import ExpectedOutputs
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.edge_cases import CANCELLING, SCALED, EdgeCase, kind_of

CANCELLED = 32.0
"""Factor on the absolute tolerance of outputs that may cancel."""
FAR = 2.0**20
"""`CANCELLED` where inputs are far from zero: outputs may be far below the products of their inputs."""
LEAST_GROWTH = 2.0**-10
"""Outputs of an edge case that are smaller than usual by less are judged as usual."""


def sized_edge_case(inputs: SessionInputs, expected: ExpectedOutputs, case: Case) -> CheckedCase:
    """An edge case with the sizes of its outputs for the seed of this session.

    Where all elements of an input have one scale, that is their own size, however small. Elsewhere it is that
    of the smallest listed workload, and growth only; outputs that may cancel get more room for roundings.

    Raises:
        InvalidInput: the reference is of no use.
    """
    listed = min(inputs.job.workloads, key=lambda w: sum(b.size_bytes for b in inputs.plan(w).buffers))
    sizes, kind = expected.sizes(listed), kind_of(case.variant)
    here = {name: expected.root_mean_square(case, name) for name in sizes}
    growth = {n: here[n] / size for n, size in sizes.items() if size > 0.0 and here[n] > 0.0}
    if kind in SCALED:
        growth = {n: 1.0 if LEAST_GROWTH < g <= 1.0 else g for n, g in growth.items()}
        sizes, growth = here, {n: g for n, g in growth.items() if n in inputs.job.tolerances}
    else:
        room = CANCELLED if kind in CANCELLING else FAR if kind is EdgeCase.FAR_BELOW else 1.0
        growth = {n: room * max(1.0, growth.get(n, 1.0)) for n in sizes}
    return CheckedCase(
        dimensions=case.workload.dimensions,
        family=case.family,
        variant=case.variant,
        growth=growth,
        sizes=sizes,
    )


def known_of(inputs: SessionInputs, expected: ExpectedOutputs, case: Case) -> CheckedCase | None:
    """Result of the user's kernel on such inputs; an edge case has the sizes of this session's seed."""
    known = inputs.baseline.known(case)
    if known is None or case.family is not Family.EDGE_CASE:
        return known
    own = sized_edge_case(inputs, expected, case)
    return known.model_copy(update={"growth": own.growth, "sizes": own.sizes})
