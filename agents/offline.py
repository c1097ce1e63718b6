"""Port of the provider that needs no model, and answers whenever another one cannot."""

from typing import Protocol, cast

from agents.context import StepContext
from agents.contracts import TunerReply
from warpsmith.domain.templates.template import Template
from warpsmith.registry import Kind, load_only
from warpsmith.tuning.tasks import Profile, StepPayload, StepResult


class OfflineProvider(Protocol):
    """Answers for every role from the job and its measurements alone."""

    name: str

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """The answer of `payload.role`.

        Raises:
            InvalidInput: the job itself makes an answer impossible.
        """
        ...

    def region(self, draft: Template, context: StepContext) -> TunerReply:
        """Constraints and first configurations that a draft lacks; both may be empty."""
        ...

    def profile(self, context: StepContext) -> Profile:
        """The bottleneck of the best kernel so far, and ideas against it."""
        ...


def offline_provider() -> OfflineProvider:
    """The installed provider without a model.

    Raises:
        ValueError: none is installed, or several are.
    """
    return cast(OfflineProvider, load_only(Kind.OFFLINE_PROVIDER)())
