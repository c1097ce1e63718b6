"""The user's kernel, compiled again for comparisons."""

from collections.abc import Iterable

from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
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


def know_words(session: DeviceSession, told: Iterable[str]) -> None:
    """Learn the telling words of the user's kernel if a candidate has others than are known of it.

    The baseline does not look for those of CUDA and HIP, and few winners have any.
    """
    baseline = session.inputs.baseline
    if not session.job.kernel.backend.language.has_cuda_words or baseline.own_telling.issuperset(told):
        return
    kernel = session.inputs.user_template.configured(session.job.space.defaults)
    own = session.compile(kernel.model_copy(update={"tells_words": True}))
    if isinstance(own, Compiled):
        baseline.own_telling |= frozenset(own.telling)
