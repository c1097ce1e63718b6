"""The user's kernel, compiled again for comparisons."""

from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import InvalidInput
from warpsmith.tuning.session.device_session import Bench


def compiled_baseline(bench: Bench) -> tuple[ConfiguredKernel, Compiled]:
    """The user's kernel, compiled again.

    Raises:
        InvalidInput: it does not compile any more.
    """
    kernel = bench.user_template.configured(bench.job.space.defaults)
    compiled = bench.compile(kernel)
    if isinstance(compiled, Rejected):
        raise InvalidInput("kernel", f"the kernel does not compile: {compiled.reason}")
    return kernel, compiled
