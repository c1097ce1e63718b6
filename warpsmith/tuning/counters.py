"""Hardware counters of the user's kernel, where the platform's profiler may be used."""

import logging

from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import launch_size
from warpsmith.errors import ExpressionError, Unavailable
from warpsmith.tuning.bench import Bench

log = logging.getLogger(__name__)


def counters_of(bench: Bench) -> dict[str, float]:
    """The counters on the heaviest workload; empty where there are none, with the reason in the log."""
    port = bench.tools.counters
    if port is None:
        return {}
    kernel = bench.user_template.configured(bench.job.space.defaults)
    compiled = bench.compile(kernel)
    workload = max(bench.job.workloads, key=lambda w: w.weight)
    if isinstance(compiled, Rejected):
        return {}
    try:
        size = launch_size(kernel, workload, bench.tools.opener.info)
        return dict(port.counters(compiled, bench.plan(workload), size))
    except (Unavailable, ExpressionError) as exc:
        log.warning("no counters: %s", exc)
        return {}
