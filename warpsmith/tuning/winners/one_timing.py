"""Times a kernel once by itself, where a comparison in pairs would cost too much."""

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Compiled, TimingPlan
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits


def timed_once(
    session: DeviceSession, workload: Workload, kernel: ConfiguredKernel, compiled: Compiled, plan: TimingPlan
) -> float | None:
    """Median time of a kernel, µs; None if it fails, is wrong in the launch that is looked at, or may not run
    here."""
    try:
        size = size_within_limits(kernel, workload, session.info)
        if isinstance(size, Rejected):
            return None
        device, variants = session.device(workload), session.variants(kernel, compiled)
        handle = variants.on(device, workload)
        samples, launch = session.sampler.sample(LoadedKernel(handle, workload, size), plan, other=None)
        variants.unload(device)
    except ChildDied:
        session.renew(faulted=True)
        return None
    except (KernelRefused, ExpressionError):
        return None
    if session.checker.refusal(launch) is not None:
        return None
    return summarise(samples.samples_us, 1).median_us
