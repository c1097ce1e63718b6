"""Parses replies into typed answers. Pure. A reply is hostile input, and an error says how to correct it."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from warpsmith.domain.plain_data import data_problem
from warpsmith.job_files.validation_errors import field_problems

MAX_REPLY_CHARACTERS = 1 << 20
MAX_COMPLAINT_CHARACTERS = 4000
MAX_PROBLEMS = 6
MAX_STARTS = 64
"""Limit on the opening braces in prose that are tried."""

# Possessive throughout, so that no reply causes backtracking.
_FENCE = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n(.*?)```", re.S)
_STRING = re.compile(r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)', re.S)
_TRAILING = re.compile(r",(\s*+[}\]])")
_OPENING = re.compile(r'\{(?=\s*+["}])')
_THOUGHTS = ("think", "thinking", "reasoning")

Answer = TypeVar("Answer", bound=BaseModel)


class BadReply(Exception):
    """A reply that cannot be used. The message is addressed to its author, and is shortened: it may quote
    what they wrote."""

    def __init__(self, words: str) -> None:
        super().__init__(words[:MAX_COMPLAINT_CHARACTERS])


def parse_reply(text: str, model: type[Answer]) -> Answer:
    """The answer in a reply; text around it is ignored.

    Raises:
        BadReply: there is none; the message says precisely what is wrong.
    """
    data = find_object(text)
    try:
        answer = model.model_validate_json(json.dumps(data))
    except ValidationError as exc:
        problems = field_problems(exc.errors(), model)
        shown = "; ".join(f"{f}: {m}" if f else m for f, m in problems[:MAX_PROBLEMS])
        more = f"; and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        raise BadReply(f"the JSON does not fit the schema: {shown}{more}") from exc
    return answer


def find_object(text: str) -> dict[str, Any]:
    """The JSON object of a reply: alone, fenced, or between prose; trailing commas are forgiven.

    Raises:
        BadReply: there is none.
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise BadReply(too_long(text))
    bare = _without_thoughts(text.strip().lstrip("\ufeff"))
    if not bare:
        raise BadReply("the reply is empty; answer with one JSON object")
    truncated = False
    for piece in _pieces(bare):
        try:
            found = json.loads(_forgiving(piece))
        except json.JSONDecodeError as exc:
            truncated |= exc.pos >= len(piece.rstrip()) - 1 or "Unterminated" in exc.msg
            continue
        except (ValueError, RecursionError) as exc:
            raise BadReply("the JSON has a number too long, or is nested too deeply") from exc
        if isinstance(found, dict) and (found or piece == bare):
            return _clean(found)
    if truncated:
        raise BadReply("the reply ends before its JSON does; answer shorter")
    raise BadReply("the reply holds no JSON object; answer with one JSON object and nothing else")


def too_long(text: str) -> str:
    """Complaint about a reply that exceeds the limit."""
    return f"the reply has {len(text)} characters; at most {MAX_REPLY_CHARACTERS}"


def _without_thoughts(text: str) -> str:
    """The text after the thoughts that some models write first."""
    for word in _THOUGHTS:
        if text.startswith(f"<{word}>") and f"</{word}>" in text:
            return text.partition(f"</{word}>")[2].strip()
    return text


def _pieces(text: str) -> Iterator[str]:
    """Pieces of the reply that may hold the object, most likely first."""
    if text.startswith("{"):
        yield text
    yield from (m.group(1).strip() for m in _FENCE.finditer(text) if m.group(1).lstrip().startswith("{"))
    end = 0
    for opening in itertools.islice(_OPENING.finditer(text), MAX_STARTS):
        if opening.start() >= end:
            end = _closing(text, opening.start())
            yield text[opening.start() : end]


def _closing(text: str, start: int) -> int:
    """Position after the brace that closes the one at `start`; the end of the text if none does."""
    depth = 0
    at = start
    while at < len(text):
        if text[at] == '"':
            match = _STRING.match(text, at)
            assert match is not None, "the pattern takes a string that never ends"
            at = match.end()
            continue
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
        if depth == 0:
            return at
    return at


def _forgiving(piece: str) -> str:
    """The piece without commas before closing brackets; strings are unchanged."""
    parts: list[str] = []
    begin = 0
    for string in _STRING.finditer(piece):
        parts += [piece[begin : string.start()], string.group()]
        begin = string.end()
    parts.append(piece[begin:])
    # A comma and its bracket are never separated by a string, so the parts can be mended one by one.
    return "".join(_TRAILING.sub(r"\1", p) if i % 2 == 0 else p for i, p in enumerate(parts))


def _clean(found: dict[str, Any]) -> dict[str, Any]:
    problem = data_problem(found)
    if problem is not None:
        field, words = problem
        raise BadReply(f"{field}: a text {words}" if field else f"the JSON {words}")
    try:
        plain = json.dumps(found, ensure_ascii=False, allow_nan=False)
        plain.encode()
    except UnicodeEncodeError as exc:
        raise BadReply("a text in the JSON is not valid Unicode") from exc
    except ValueError as exc:
        raise BadReply("the JSON has NaN or an infinity, which JSON does not know") from exc
    return found
