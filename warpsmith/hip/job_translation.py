"""A CUDA job as one of HIP."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Expression
from warpsmith.domain.job import Job
from warpsmith.domain.kernel import Compiler, Kernel
from warpsmith.domain.space import Constraint
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.hip.source_words import Refusal
from warpsmith.hip.translation import Translation, translated
from warpsmith.hip.words import RENAMED
from warpsmith.rewrite.reader.lexing.conditionals import given_macros

WIDEST = 64
"""Threads of the widest wavefront."""
_OPTIONS = {"--use_fast_math": "-ffast-math", "-use_fast_math": "-ffast-math"}
_KEPT = re.compile(r"--?std=c\+\+\d+|-D.*")
_NAME = re.compile(r"\b(?:" + "|".join(map(re.escape, RENAMED)) + r")\b")
_FREE = "so that every wavefront is full, with 32 threads or with 64"


@dataclass(frozen=True)
class TranslatedJob:
    """What became of a job."""

    translation: Translation
    refusals: tuple[Refusal, ...]
    """All that is outside the subset: of the texts by file and line, then of the job's fields."""
    job: Job | None = None
    """The job for HIP; None if something is refused."""


def translated_job(job: Job) -> TranslatedJob:
    """Translate the source of a CUDA job, its headers, options and entries.

    Raises:
        InvalidInput: the job is not for CUDA.
    """
    kernel = job.kernel
    if kernel.backend is not Backend.CUDA:
        words = f"{kernel.backend.value}: only jobs of back end cuda are translated to HIP"
        raise InvalidInput("kernel.backend", words)
    texts = {"": kernel.text, **kernel.files}
    # A macro that is searched has no one value.
    searched = {p.name: "" for p in job.parameters}
    found = translated(texts, {**given_macros(kernel.options), **searched})
    refusals = [*found.refusals, *_of_kernel(kernel)]
    if found.has_whole_warps:
        refusals += _partial_warps(job)
    if refusals:
        return TranslatedJob(found, tuple(refusals))
    return TranslatedJob(found, (), _with_texts(job, found))


def _of_kernel(kernel: Kernel) -> Iterator[Refusal]:
    for n, option in enumerate(kernel.options):
        if option not in _OPTIONS and not _KEPT.fullmatch(option):
            yield Refusal("", 0, f"kernel.options.{n}", f"{option} has no counterpart in clang; leave it out")
    if kernel.includes:
        yield Refusal(
            "", 0, "kernel.includes", "headers of the operator are not translated; send them as files"
        )
    if kernel.compiler is Compiler.NVCC:
        yield Refusal(
            "", 0, "kernel.compiler", "nvcc compiles no HIP here; use auto, if NVRTC reads the source"
        )
    for place, launch in kernel.placed_launches():
        if launch.cluster:
            yield Refusal("", 0, f"kernel.{place}.cluster", "HIP has no clusters")


def _partial_warps(job: Job) -> Iterator[Refusal]:
    """Launches whose rows of threads do not fill wavefronts."""
    for place, launch in job.kernel.placed_launches():
        field = f"kernel.{place}.block"
        for workload in job.workloads:
            try:
                threads = launch.block[0].integer({**workload.scope(), **job.space.defaults})
            except ExpressionError:
                yield Refusal("", 0, field, "its threads along x are known on the device only; give a number")
                return
            if threads % WIDEST:
                reason = f"{threads} threads along x ({workload.key}); take a multiple of {WIDEST}, {_FREE}"
                yield Refusal("", 0, field, reason)
                return


def _with_texts(job: Job, found: Translation) -> Job:
    kernel = job.kernel
    options = tuple(_renamed(_OPTIONS.get(o, o)) for o in kernel.options)
    update: dict[str, object] = {
        "backend": Backend.HIP,
        "source": found.texts[""],
        "files": {name: text for name, text in found.texts.items() if name},
        "options": options,
        "entry": _renamed(kernel.entry),
        "launches": tuple(s.model_copy(update={"entry": _renamed(s.entry)}) for s in kernel.launches),
    }
    constraints = (*job.constraints, *_whole_wavefronts(job)) if found.has_whole_warps else job.constraints
    changed = job.model_copy(update={"kernel": kernel.model_copy(update=update), "constraints": constraints})
    # The copy is not checked; a job that is read again is.
    return Job.model_validate(changed.model_dump(exclude_unset=True, by_alias=True))


def _whole_wavefronts(job: Job) -> Iterator[Constraint]:
    names = {p.name for p in job.parameters}
    for _, launch in job.kernel.placed_launches():
        threads = launch.block[0]
        if names & set(threads.names):
            expression = Expression(f"({threads.text}) % {WIDEST} == 0")
            yield Constraint(expression=expression, reason=f"threads along x, {_FREE}")


def _renamed(text: str) -> str:
    """A name expression or an option with HIP's names of types."""
    return re.sub(r"\bcub::", "hipcub::", _NAME.sub(lambda m: RENAMED[m.group()], text))
