"""Hardware counters of the user's kernel and of winners, where the platform's profiler may be used."""

import logging
from collections.abc import Sequence

from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import launch_size
from warpsmith.domain.space import Configuration
from warpsmith.domain.state import TaskState
from warpsmith.domain.template import Template
from warpsmith.errors import ExpressionError, Unavailable
from warpsmith.tuning.actions import TaskView
from warpsmith.tuning.bench import Bench
from warpsmith.tuning.tasks import BaselineResult, ChecksPayload, Counters, SlicePayload

log = logging.getLogger(__name__)
MAX_WORDS = 500


def counters_of(
    bench: Bench, template: Template | None = None, configuration: Configuration | None = None
) -> Counters:
    """The counters of a configuration, by default of the user's kernel, or why there are none.

    They are taken on the heaviest workload that the constraints allow.
    """
    port = bench.tools.counters
    if port is None:
        return Counters()
    template = template or bench.user_template
    kernel = template.configured(template.space.defaults if configuration is None else configuration)
    try:
        workload = max(bench.allowed(template, kernel) or bench.job.workloads, key=lambda w: w.weight)
        compiled = bench.compile(kernel)
        if isinstance(compiled, Rejected):
            raise Unavailable(f"the kernel does not compile any more: {compiled.reason}")
        size = launch_size(kernel, workload, bench.tools.opener.info)
        return Counters(kernel=kernel.key, values=dict(port.counters(compiled, bench.plan(workload), size)))
    except (Unavailable, ExpressionError) as exc:
        words = " ".join(f"no hardware counters: {exc}".split())[:MAX_WORDS]
        log.warning("%s", words)
        return Counters(kernel=kernel.key, missing=words)


def profiles(task: TaskView) -> bool:
    """Whether a task profiles a candidate, which a job can do without."""
    return isinstance(task.payload, ChecksPayload) and task.payload.profiled is not None


def to_profile(tasks: Sequence[TaskView], baseline: BaselineResult, candidate: str | None) -> bool:
    """Whether the best of a candidate is to be profiled: that works here, and was not done yet. Pure."""
    if candidate is None or not baseline.counters.values or any(c.missing for c in baseline.counted):
        return False
    searched = seen = -1
    for place, task in enumerate(tasks):
        if profiles(task) and task.state is TaskState.DEAD:
            return False
        if isinstance(task.payload, SlicePayload) and task.payload.candidate == candidate:
            searched = place
        if isinstance(task.payload, ChecksPayload) and task.payload.profiled == candidate:
            seen = place
    return seen < searched
