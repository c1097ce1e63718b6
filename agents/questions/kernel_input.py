"""The user's kernel in a question: its arguments, how it is checked, what compiles it. Pure."""

from agents.contracts import ConstraintText, KernelInput
from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.arguments.draw import Distribution
from warpsmith.domain.device import Backend, DeviceInfo, is_nvidia
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.launch import SequencedLaunch
from warpsmith.source.lexing.tokens import without_comments

_COMPILER = {
    Backend.CUDA: "NVRTC ({std}) for {architecture}. At hand: the toolkit's cuda_fp16.h, cuda_bf16.h, "
    "cuda_fp8.h, mma.h, cooperative_groups.h, cuda/barrier, cuda/pipeline, cuda/ptx, cuda/std/*, cub/*, and "
    "small standard headers; no host code",
    Backend.HIP: "HIP's run-time compiler ({std}) for {architecture}; no host code",
    Backend.OPENCL: "the device's OpenCL C compiler ({architecture})",
}
_NVIDIA = (
    "The launcher opts in to all of `device.max_shared_per_block`, static and dynamic together; above 48 KB "
    "shared memory must be dynamic. There is no tensor map and no programmatic dependent launch, and "
    "{launches}."
)
_ONE_LAUNCH = "a template is one launch of the entry, without a second kernel or scratch memory"
_FROM_90 = (
    "16-byte accesses, cp.async and bulk copies with an mbarrier are there. Clusters take up to 8 blocks, 16 "
    "where the device allows it (`cluster` of the answer), with distributed shared memory."
)
_CHECKED = (
    "beside the workloads: shapes near the smallest one, and small ones by lot (extents of 1, primes, and "
    "numbers that no vector divides), with large, tiny, equal, ordered and cancelling values; "
    "and an output may not be much less exact than the user's kernel, even within the tolerance"
)


def kernel_input(job: Job, device: DeviceInfo | None) -> KernelInput:
    """The kernel of a job."""
    kernel = job.kernel
    return KernelInput(
        backend=kernel.backend.value,
        entry=kernel.entry,
        source=without_comments(kernel.text),
        arguments=tuple(_argument(a) for a in kernel.declared),
        grid=tuple(e.text for e in kernel.launch.grid),
        block=tuple(e.text for e in kernel.launch.block),
        shared_bytes=kernel.launch.shared_bytes.text,
        attributes=kernel.launch.attributes_text,
        cache=job.objective.cache.value,
        tolerances={a.name: _tolerance(job, a) for a in kernel.declared if a.is_mutated},
        constraints=tuple(
            ConstraintText(expression=c.expression.text, reason=c.reason) for c in job.constraints
        ),
        checked=_CHECKED if kernel.backend is not Backend.REPLAY else "",
        compiler=_compiler(job, device),
        options=tuple(kernel.options),
        headers=tuple(sorted(kernel.files)),
        launches=tuple(f"{n}: {_launch(step)}" for n, step in enumerate(kernel.launches)),
        workloads=tuple(f"{w.key} (weight {w.weight:g})" for w in job.workloads),
    )


def _compiler(job: Job, device: DeviceInfo | None) -> tuple[str, ...]:
    backend = job.kernel.backend
    if device is None or backend not in _COMPILER:
        return ()
    std = next((o.partition("std=")[2] for o in job.kernel.options if "std=" in o), "c++17")
    made = [_COMPILER[backend].format(std=std, architecture=device.architecture) + "."]
    if backend is Backend.CUDA and is_nvidia(device.architecture):
        kept = "the launches stay those of the job" if job.kernel.launches else _ONE_LAUNCH
        made.append(_NVIDIA.format(launches=kept))
        number = "".join(filter(str.isdigit, device.architecture))
        made += [_FROM_90] if int(number or 0) >= 90 and not job.kernel.launches else []
    return tuple(made)


def _tolerance(job: Job, argument: Argument) -> str:
    found = job.tolerance(argument.name, argument.dtype)
    if not (found.rtol or found.atol or found.share):
        return "equal in every bit"
    given = argument.name in job.tolerances
    whose = "the job's" if given else f"the default of {argument.dtype.value}, adapted to the output's size"
    made = f"|got - want| <= {found.atol:g} + {found.rtol:g} |want| ({whose})"
    return (
        f"{made}; {found.share:.3%} of the elements may miss by up to {found.within:g}"
        if found.share
        else made
    )


def _launch(step: SequencedLaunch) -> str:
    """`merge(partial, y, rows), grid (rows), block (64), shared_bytes 0`."""
    grid, block = (", ".join(e.text for e in extents) for extents in (step.launch.grid, step.launch.block))
    taken = f"{step.entry}({', '.join(step.arguments)})"
    return f"{taken}, grid ({grid}), block ({block}), shared_bytes {step.launch.shared_bytes.text}"


def _argument(argument: Argument) -> str:
    if argument.value is not None:
        made = f"{argument.name}: {argument.role.value} {argument.dtype.value} = {argument.value.text}"
        return made + (_varied(argument) if argument.role is Role.SCALAR else "")
    if not argument.is_buffer and argument.role is not Role.LOCAL:
        given = argument.model_dump_json(exclude_defaults=True, exclude={"name", "dtype", "role"})
        return f"{argument.name}: {argument.role.value} {'that is null' if given == '{}' else given}"
    shape = ", ".join(e.text for e in argument.shape)
    kind = f"image {argument.image.channels.value} " if argument.image is not None else ""
    made = f"{argument.name}: {argument.role.value} {kind}{argument.dtype.value}[{shape}]"
    if argument.role in (Role.INPUT, Role.INOUT):
        made += f", {_draw(argument)}"
    return made + (f", only elements with {argument.kept.text} count" if argument.kept is not None else "")


def _varied(argument: Argument) -> str:
    if argument.value is None or argument.value.names:
        return ""
    if argument.dtype.is_float:
        return " (varied: checks draw it anew)"
    return " (varied in checks, where the user's kernel stays inside its buffers with it)"


def _draw(argument: Argument) -> str:
    draw = argument.draw
    if draw is None:
        return "drawn normal, mean 0, std 1" if argument.dtype.is_float else "drawn from 0 to 127"
    return (
        f"drawn {_DRAWN[draw.distribution].format(low=_text(draw.low), high=_text(draw.high), draw=draw)}"
        + (", in every row" if draw.per_row else "")
    )


def _text(bound: object) -> str:
    return f"{bound:g}" if isinstance(bound, int | float) else str(getattr(bound, "text", bound))


_DRAWN = {
    Distribution.NORMAL: "normal, mean {draw.mean:g}, std {draw.std:g}",
    Distribution.UNIFORM: "uniform in [{low}, {high})",
    Distribution.INTEGERS: "integers in [{low}, {high})",
    Distribution.CONSTANT: "constant {low}",
    Distribution.MASK: "as a mask, 1 with probability {draw.share:g}",
    Distribution.PERMUTATION: "as a permutation from {low} on",
    Distribution.DISTINCT: "distinct integers in [{low}, {high})",
    Distribution.OFFSETS: "as offsets from {low} to {high} that never decrease",
    Distribution.ROUTING: "as {draw.routing.part} of {high} tokens sorted by expert: {draw.routing}",
    Distribution.FILE: "from a file of the job",
}
