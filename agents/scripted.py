"""The provider `scripted`: answers from a list, for tests and replays. It calls nobody."""

from collections.abc import Sequence

from agents.context import StepContext
from agents.parsing import BadReply
from agents.reply_acceptance import accept
from agents.step_record import NoAnswer, Record
from warpsmith.tuning.tasks import StepPayload, StepResult


class ScriptedProvider:
    """Gives its replies in order.

    Args:
        replies: replies as written by a model or a person.
        name: name of their author.
    """

    def __init__(self, replies: Sequence[str], name: str = "scripted") -> None:
        self._replies = list(replies)
        self.name = name

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.steps.Provider`.

        Raises:
            NoAnswer: the replies are used up, or the next one cannot be used.
        """
        if not self._replies:
            raise NoAnswer("the script has ended")
        text = self._replies.pop(0)
        try:
            return accept(text, self.name, payload, context)
        except BadReply as exc:
            raise NoAnswer(f"no reply was of use: {exc}", Record(reply=text)) from exc
