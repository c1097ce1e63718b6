"""What a job file leaves open, as a question to a model."""

import json
from typing import Any

from agents.parsing import parse_reply
from agents.prompting import prompt_file
from warpsmith.job_filling.contracts import FillQuestion, FillReply

ROLE = "filler"


def question_file(question: FillQuestion) -> str:
    """The question as JSON for whoever answers, with instructions and the schema of the reply."""
    version, text = prompt_file(ROLE)
    asked = {
        "version": f"{ROLE}-{version}",
        "instructions": text.replace("{where}", "in the field `question`"),
        "question": question.model_dump(mode="json"),
        "wanted": FillReply.model_json_schema(),
    }
    return json.dumps(asked, indent=1, ensure_ascii=False) + "\n"


def reply_of(text: str) -> FillReply:
    """The reply in a text; prose around it is ignored.

    Raises:
        BadReply: there is none; the message is addressed to its author.
    """
    return parse_reply(text, FillReply)


def schema() -> dict[str, Any]:
    """JSON schema of a reply."""
    return FillReply.model_json_schema()
