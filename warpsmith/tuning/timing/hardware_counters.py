"""Hardware counters of the user's kernel and of winners, if the platform's profiler is permitted."""

import logging
from collections.abc import Sequence

from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.templates.outcome import Rejected, WorkloadTiming
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ExpressionError, Unavailable
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import Counters

log = logging.getLogger(__name__)
MAX_WORDS = 500


def counters_of(
    session: DeviceSession,
    template: Template | None = None,
    configuration: Configuration | None = None,
    timings: Sequence[WorkloadTiming] = (),
) -> Counters:
    """The counters of a configuration, by default of the user's kernel, or the reason why there are none.

    They are taken on the workload that the constraints allow with the largest product of time and weight.
    """
    port = session.ports.counters
    if port is None:
        return Counters()
    template = template or session.inputs.user_template
    kernel = template.configured(template.space.defaults if configuration is None else configuration)
    try:
        times = {t.workload: time_us(session.job, t) or 0.0 for t in timings}
        allowed = session.inputs.allowed(template, kernel) or session.job.workloads
        workload = max(allowed, key=lambda w: (w.weight * times.get(w.key, 0.0), w.weight))
        compiled = session.compile(kernel)
        if isinstance(compiled, Rejected):
            raise Unavailable(f"the kernel no longer compiles: {compiled.reason}")
        size = launch_size(kernel, workload, session.info)
        return Counters(
            kernel=kernel.key, values=dict(port.counters(compiled, session.inputs.plan(workload), size))
        )
    except (Unavailable, ExpressionError) as exc:
        words = " ".join(f"no hardware counters: {exc}".split())[:MAX_WORDS]
        log.warning("%s", words)
        return Counters(kernel=kernel.key, missing=words)
