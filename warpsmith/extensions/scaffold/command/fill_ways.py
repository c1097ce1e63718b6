"""Completes a scaffold with replies of the operator's model, or of whoever answers a file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warpsmith import applications
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.extensions.scaffold.command.files import read_text, write_text
from warpsmith.extensions.scaffold.command.fill import Filled, Filler, with_remarks
from warpsmith.job_files.filling_contracts import FillReply


@dataclass(frozen=True)
class FillWays:
    """Source of the reply that completes a scaffold; at most one, but a question may follow an answer."""

    question: Path | None = None
    """File that the question is written to."""
    answer: Path | None = None
    """File of a reply."""
    asks_model: bool = False

    @property
    def any(self) -> bool:
        """True if something is to be filled in."""
        return self.asks_model or self.question is not None or self.answer is not None


def completed(filler: Filler, ways: FillWays) -> str | None:
    """The job file, filled in; None if only a question was written.

    Raises:
        InvalidInput: there is no reply, or it is wrong; the message says how.
        Unavailable: no model is configured, or none of its replies is right.
    """
    if ways.asks_model and (ways.question or ways.answer):
        raise InvalidInput("--model", "asks the configured model; --question and --answer are for others")
    agents = applications.load("agents.providers.job_filling")
    if ways.asks_model:
        return _of_model(filler, agents)
    if ways.answer is None:
        assert ways.question is not None, "one of the ways is given"
        write_text(ways.question, agents.question_file(filler.question()), "--question")
        return None
    reply = agents.reply_of(read_text(ways.answer, "--answer"))
    found = filler.check(reply)
    if found.problems:
        if ways.question is not None:
            question = filler.question(reply, found.problems)
            write_text(ways.question, agents.question_file(question), "--question")
        raise InvalidInput("--answer", "\n".join(["the reply is not right:", *found.problems]))
    return with_remarks(found.text, found.notes, f"a model ({ways.answer.name})")


def _of_model(filler: Filler, agents: Any) -> str:
    last: list[FillReply] = []

    def check(reply: FillReply) -> Sequence[str]:
        last[:] = [reply]
        return filler.check(reply).problems

    try:
        reply, name = agents.ask_model(filler.question(), filler.compiler.settings, check)
        found = filler.check(reply)
    except Unavailable as exc:
        # A reference that differs says nothing of the launch and the shapes, which count without it.
        found = filler.check(last[0].model_copy(update={"reference": ""})) if last else Filled("", ("",))
        if found.problems or not last[0].reference:
            raise
        found = replace(found, notes=(*found.notes, f"its reference is left out: {exc}"))
        name = filler.compiler.settings.model_of("filler")
    return with_remarks(found.text, found.notes, f"a model ({name})")
