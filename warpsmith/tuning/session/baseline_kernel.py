"""The user's kernel, compiled again for comparisons."""

from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import InvalidInput
from warpsmith.tuning.session.device_session import DeviceSession


def compiled_baseline(session: DeviceSession) -> tuple[ConfiguredKernel, Compiled]:
    """The user's kernel, compiled again.

    Raises:
        InvalidInput: it no longer compiles.
    """
    kernel = session.inputs.user_template.configured(session.job.space.defaults)
    compiled = session.compile(kernel)
    if isinstance(compiled, Rejected):
        raise InvalidInput("kernel", f"the kernel does not compile: {compiled.reason}")
    return kernel, compiled
