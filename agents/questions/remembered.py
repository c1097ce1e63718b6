"""Lessons of earlier jobs about a kernel, in words, and their template for a kernel that is known. Pure."""

from agents.context import StepContext
from agents.questions.tried import gain_in_words, named
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.lessons.lesson import Attempt, Lesson, Served
from warpsmith.tuning.step_facts import Earlier

MOST_ATTEMPTS = 4
MOST_WORKLOADS = 6
MAX_REASON_CHARACTERS = 300
LEAST_EXAMPLE_SPEEDUP = 1.02
"""Verified speed-up below which a template is not worth its place in a question."""


def lessons(context: StepContext) -> tuple[str, ...]:
    """Lesson of each earlier job, the most similar kernel first."""
    return tuple(_in_words(earlier) for earlier in context.earlier)


def example(context: StepContext) -> Template | None:
    """The template that gained most in the most similar job that gained; None if none did."""
    for earlier in context.earlier:
        best = _best_served(earlier.lesson)
        if best is not None and best.speedup >= LEAST_EXAMPLE_SPEEDUP:
            return _attempt(earlier.lesson, best).template
    return None


def known_template(context: StepContext) -> tuple[Template, str] | None:
    """The template that serves this very kernel on this chip, whatever its driver, with its winners to try
    first, and the id of its job; None if no earlier job gained, or if this job asks for something else."""
    chip = None if context.baseline is None else context.baseline.device.chip
    for earlier in context.earlier:
        lesson = earlier.lesson
        if not earlier.is_same_kernel or lesson.device.chip != chip:
            continue
        best = _best_served(lesson)
        if best is None or best.speedup <= 1 or not _fits(context.job, lesson.job):
            continue
        template = _attempt(lesson, best).template
        if not all(a.rule == "written" or context.job.rewrite.permits(a.rule) for a in template.applied):
            continue
        winners = [s.configuration for s in lesson.served if s.attempt == best.attempt]
        winners = [w for n, w in enumerate(winners) if w not in winners[:n]]
        return template.model_copy(update={"warm_starts": tuple(winners)}), earlier.job_id
    return None


def _fits(job: Job, other: Job) -> bool:
    """True if a template for one job's kernel has the other's parameters."""
    return (job.parameters, job.constraints) == (other.parameters, other.constraints)


def _best_served(lesson: Lesson) -> Served | None:
    served = [s for s in lesson.served if s.attempt is not None]
    return max(served, key=lambda s: s.speedup, default=None)


def _attempt(lesson: Lesson, served: Served) -> Attempt:
    assert served.attempt is not None, "the user's kernel is no attempt"
    return lesson.attempts[served.attempt]


def _in_words(earlier: Earlier) -> str:
    lesson = earlier.lesson
    kernel = "this kernel" if earlier.is_same_kernel else f"a kernel {earlier.likeness:.0%} like this one"
    elsewhere = "" if earlier.is_same_device_class else ", another device class"
    served = "; ".join(_served(s) for s in lesson.served[:MOST_WORKLOADS])
    bounds = ", ".join(sorted(set(lesson.bounds))) or "unknown"
    head = f"job {earlier.job_id}: {kernel}, on {lesson.device.name}{elsewhere}, bound by {bounds}"
    tried = " | ".join(_tried(a) for a in lesson.attempts[:MOST_ATTEMPTS]) or "nothing"
    return f"{head}. Verified: {served or 'no gain'}. Tried: {tried}"


def _served(served: Served) -> str:
    if served.attempt is None:
        return f"{served.workload}: your kernel"
    return f"{served.workload}: {served.speedup:.2f}x with {named(served.configuration)}"


def _tried(attempt: Attempt) -> str:
    made = "; ".join(a.rule if a.rule != "written" else a.detail for a in attempt.template.applied)
    head = f"{made or 'as it is'}"
    if attempt.rejected:
        return f"{head}: rejected: {attempt.rejected[:MAX_REASON_CHARACTERS]}"
    if attempt.objective is None:
        return f"{head}: {attempt.trials} trials, none measured"
    return f"{head}: {gain_in_words(attempt.objective)} after {attempt.trials} trials"
