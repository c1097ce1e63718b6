"""Features of a kernel by which cards are chosen. Pure."""

from agents.context import StepContext
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import rewriter
from warpsmith.tuning.analysis.search_facts import facts_of

_WIDE = (Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT64)
_FP8 = (Dtype.FLOAT8_E4M3FN, Dtype.FLOAT8_E5M2, Dtype.FLOAT8_E4M3FNUZ, Dtype.FLOAT8_E5M2FNUZ)
_QUANTISED = (Dtype.INT8, *_FP8)


def features_of(context: StepContext) -> frozenset[str]:
    """The features of the job's kernel; of a sequence, of its first launch.

    `any`, and those of row, reduction, quantisation, launch_bound.
    """
    made = {"any", *rewriter().kernel_traits(context.job, context.include_dirs)}
    if _quantises(context.job):
        made.add("quantisation")
    if _is_launch_bound(context):
        made.add("launch_bound")
    return frozenset(made)


def _quantises(job: Job) -> bool:
    """True if values of 8 bits are made from wider ones, or the other way round."""
    read = {a.dtype for a in job.kernel.declared if a.role in (Role.INPUT, Role.INOUT)}
    written = {a.dtype for a in job.kernel.declared if a.role in (Role.OUTPUT, Role.INOUT)}
    # Kernels may declare codes of FP8 as bytes. Bytes that are read are more often flags.
    makes = not written.isdisjoint((*_QUANTISED, Dtype.UINT8)) and not read.isdisjoint(_WIDE)
    return makes or (not read.isdisjoint(_QUANTISED) and not written.isdisjoint(_WIDE))


def _is_launch_bound(context: StepContext) -> bool:
    """True if on some workload the floor is that of a launch, not of bytes or operations."""
    if context.baseline is None:
        return False
    known = facts_of(context.job, context.baseline).baseline.workloads
    return any(w.floor_bound == "launch" for w in known)
