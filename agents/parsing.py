"""Parses replies into typed answers. Pure. A reply is hostile input, and an error says how to correct it."""

import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agents.fenced_blocks import FENCE, FencedBlock, completed, is_block, may_be_fenced, read_block
from warpsmith.domain.plain_data import data_problem
from warpsmith.job_files.validation_errors import field_problems

MAX_REPLY_CHARACTERS = 1 << 20
MAX_COMPLAINT_CHARACTERS = 4000
MAX_PROBLEMS = 6
MAX_FOUND = 64
"""Limit on the objects of a reply that are looked at, from its end, and on the broken ones."""
BLANK = "\ufeff \t\r\n"
LEXED = 2
"""Limit on the characters in broken objects that are looked at, as a multiple of the reply's length."""

_NAMES = r"(?:\w+:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|analysis|scratchpad)"
_CLOSING = (
    rf"</\s*+{_NAMES}\s*+>|\[/THINK\]|\u25c1/think\u25b7|<\|end_(?:of_thought|thinking)\|>"
    r"|<\|channel\|>\s*+final[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>|assistantfinal(?=[\s`{])"
)
_EVENT = re.compile(
    # Possessive throughout, so that no reply causes backtracking. A quoted tag is none.
    rf"(?<!`)(?P<close>{_CLOSING})|{FENCE}"
    rf"|(?<!`)(?P<open><{_NAMES}(?:\s[^<>]*+)?>|\[THINK\]|\u25c1think\u25b7|<\|(?:begin_of_thought|start_thinking)\|>"
    r"|<\|channel\|>[^<]*+<\|message\|>|\Aanalysis(?=(?-i:[A-Z])))"
    r"|(?:^(?P<line>)[ \t]*+)?+\{(?P<weak>(?!\s*+[\"}]))?+",
    re.M | re.I,
)
_CLOSING_LINE = re.compile(rf"^[ \t]*+(?:{_CLOSING})", re.M | re.I)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)|,(?=\s*+[}\]])|[{}]', re.S)
_BAD_ESCAPE = re.compile(r'(\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})|\\')
_PAGE = re.compile(r"\s*+<(?:!doctype|html|head|body|\?xml)", re.I)
_DECODER = json.JSONDecoder(strict=False)

Answer = TypeVar("Answer", bound=BaseModel)
Used = TypeVar("Used")


class BadReply(Exception):
    """A reply that cannot be used. The message is addressed to its author, and is shortened: it may quote
    what they wrote."""

    def __init__(self, words: str) -> None:
        super().__init__(words[:MAX_COMPLAINT_CHARACTERS])


def parse_reply(text: str, *models: type[Answer]) -> Answer:
    """The answer in a reply: of its objects the last that fits one of the models. A field marked as `Fenced`
    may stand in a fenced block beside the object.

    Raises:
        BadReply: there is none; the message says precisely what is wrong.
    """
    return _last(text, models, lambda data: _fitting(data, models))


def find_object(text: str, *models: type[BaseModel]) -> dict[str, Any]:
    """The JSON object of a reply, as it is written: the last that fits one of the models, if there are any.

    Thoughts are left out, prose around it is ignored, and trailing commas and line breaks in strings are
    forgiven.

    Raises:
        BadReply: there is none.
    """
    return _last(text, models, lambda data: (models and _fitting(data, models), data)[1])


def _last(text: str, models: Sequence[type[BaseModel]], use: Callable[[dict[str, Any]], Used]) -> Used:
    """The answer, or the complaint, that the last usable object gives."""
    if len(text) > MAX_REPLY_CHARACTERS:
        raise BadReply(too_long(text))
    reply = _ReplyText(text, fences=any(map(may_be_fenced, models)))
    names = {name for model in models for name in model.model_fields}
    complaints: list[tuple[bool, str]] = []
    for found in reversed(reply.found):
        if isinstance(found, _BrokenObject):
            meant = any(f'"{name}"' in found.text for name in names)
            complaints.append((meant, found.words))
            if meant and found.nearly:
                break
            continue
        try:
            return use(_clean(reply.completed(found, models)))
        except BadReply as exc:
            complaints.append((bool(names & found.keys()), str(exc)))
    if reply.is_block_alone:
        return use(_clean(reply.completed({}, models)))
    reply.check_text()
    if complaints:
        raise BadReply(max(complaints, key=lambda c: c[0])[1])
    raise BadReply("the reply holds no JSON object; answer with one JSON object and nothing else")


def _fitting(data: dict[str, Any], models: Sequence[type[Answer]]) -> Answer:
    """The object as the model whose required fields it has."""
    model = _model_of(data, models)
    assert model is not None
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError as exc:
        problems = field_problems(exc.errors(), model)
        shown = "; ".join(f"{f}: {m}" if f else m for f, m in problems[:MAX_PROBLEMS])
        more = f"; and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        raise BadReply(f"the JSON does not fit the schema: {shown}{more}") from exc


def _model_of(data: dict[str, Any], models: Sequence[type[Answer]]) -> type[Answer] | None:
    """The model of whose required fields an object has most; None if there are no models."""
    required = [(sum(f.is_required() and n in data for n, f in m.model_fields.items()), m) for m in models]
    return max(required, key=lambda r: r[0], default=(0, None))[1]


def too_long(text: str) -> str:
    """Complaint about a reply that exceeds the limit."""
    return f"the reply has {len(text)} characters; at most {MAX_REPLY_CHARACTERS}"


@dataclass(frozen=True)
class _BrokenObject:
    """An object that is no JSON."""

    text: str
    words: str
    """Complaint to its author."""
    nearly: bool
    """True if it is cut off, or wrong in escapes alone."""


class _ReplyText:
    """The objects and fenced blocks of a reply, without its thoughts, in one pass: a tag in a string of an
    object, or in a block, is none.

    Args:
        fences: True if a block may be a part of the answer.
    """

    def __init__(self, text: str, fences: bool) -> None:
        self._text, self._fences = text, fences
        self._begin = 0
        """End of the last thought."""
        self._weak = -1
        """Place of the first brace that begins no JSON."""
        self._empty = ""
        """The last object without fields, which is an answer if nothing else is there."""
        self._left, self._tries = LEXED * len(text), MAX_FOUND
        self._doubtful = False
        """True after an object without end: what stands inside of it may be a part of it."""
        self._around = ""
        """Fence around the JSON that is being read."""
        self.found: deque[dict[str, Any] | _BrokenObject] = deque(maxlen=MAX_FOUND)
        self.blocks: deque[FencedBlock] = deque(maxlen=MAX_FOUND)
        thinking = False
        at = 0
        while event := _EVENT.search(text, at):
            at = event.end()
            if event["close"]:
                self.found.clear()
                self.blocks.clear()
                self._around = ""
                self._begin, self._weak, self._doubtful, thinking = at, -1, False, False
            elif event["open"]:
                thinking = True
            elif event["fence"]:
                at = at if thinking else self._fenced(event)
            elif event["weak"] is not None and not thinking:
                self._weak = at - 1 if self._weak < 0 else self._weak
                self._doubtful |= event["line"] is not None
            elif not thinking and (event["line"] is not None or not self._doubtful):
                at = self._object(at - 1)
        if self._empty and text[self._begin :].strip(BLANK) == self._empty:
            self.found.append({})
        if thinking:
            raise BadReply("the reply ends within its thoughts; answer after them, and think shorter")

    @property
    def is_block_alone(self) -> bool:
        """True if there are fenced blocks, and nothing that was meant as an object."""
        return bool(self.blocks) and not self.found and not (self._weak >= 0 and self._doubtful)

    def completed(self, data: dict[str, Any], models: Sequence[type[BaseModel]]) -> dict[str, Any]:
        """An object with the fenced blocks in the fields that it leaves out."""
        data, complaint = completed(data, _model_of(data, models), self.blocks)
        if complaint:
            raise BadReply(complaint)
        return data

    def _fenced(self, opening: re.Match[str]) -> int:
        """Reads the fenced block that begins here, if one does; where to go on."""
        if not self._fences:
            return opening.end()
        if self._around and opening["fence"].startswith(self._around) and not opening["info"].strip():
            self._around = ""
            return opening.end()
        if self._left <= 0 or not is_block(self._text, opening):
            self._around = opening["fence"] if "m" not in opening["info"].lower() else ""
            return opening.end()
        block, end = read_block(self._text, opening, self._begin)
        tag = _CLOSING_LINE.search(block.text)
        if tag and (not block.is_closed or re.search(FENCE, block.text[tag.end() :], re.M)):
            # The block stands in thoughts, which end inside of what looked like it.
            self._left -= len(block.text)
            return opening.end()
        if block.text.strip(BLANK):
            self.blocks.append(block)
        return end

    def check_text(self) -> None:
        """Complains about a reply that is empty, or another thing than an answer."""
        if not self._text[self._begin :].strip(BLANK):
            what = "nothing follows the thoughts of the reply" if self._begin else "the reply is empty"
            raise BadReply(f"{what}; answer with one JSON object")
        if _PAGE.match(self._text, self._begin):
            raise BadReply("the reply is an HTML page; answer with one JSON object and nothing else")
        if self._weak >= 0 and not self.found:
            words = "Expecting a name in double quotes"
            raise BadReply(_rule(self._text, self._weak + 1, words))

    def _object(self, start: int) -> int:
        """Reads the object that begins here, if one does; where to go on."""
        if self._left <= 0 or self._tries <= 0:
            return start + 1
        try:
            data, end = _DECODER.raw_decode(self._text, start)
        except json.JSONDecodeError:
            return self._broken(start)
        except (ValueError, RecursionError) as exc:
            raise BadReply("the JSON has a number too long, or is nested too deeply") from exc
        if data:
            self.found.append(data)
        else:
            self._empty = self._text[start:end]
        return int(end)

    def _broken(self, start: int) -> int:
        """Mends the object that begins here, or says what is wrong with it."""
        piece, closed = _mended(self._text, start)
        end = start + len(piece)
        self._left, self._tries = self._left - len(piece), self._tries - 1
        try:
            self.found.append(_DECODER.decode(piece))
            return end
        except json.JSONDecodeError as exc:
            problem = exc
        except (ValueError, RecursionError) as exc:
            raise BadReply("the JSON has a number too long, or is nested too deeply") from exc
        cut = not closed and (problem.pos >= len(piece.rstrip()) - 1 or "Unterminated" in problem.msg)
        nearly = problem.msg.startswith("Invalid \\") and _is_json(_BAD_ESCAPE.sub(_escaped, piece))
        words = "the reply ends before its JSON does; answer shorter"
        words = words if cut else _rule(self._text, start + problem.pos, problem.msg)
        self.found.append(_BrokenObject(piece, words, cut or nearly))
        if nearly or (closed and not _CLOSING_LINE.search(piece)):
            return end
        self._doubtful = True
        return start + 1


def _mended(text: str, start: int) -> tuple[str, bool]:
    """The object at `start`, with blanks for commas before closing brackets; True if it has an end."""
    depth, begin, parts = 0, start, []
    for token in _TOKEN.finditer(text, start):
        first = text[token.start()]
        if first == ",":
            parts += [text[begin : token.start()], " "]
            begin = token.end()
        depth += (first == "{") - (first == "}")
        if depth == 0:
            return "".join([*parts, text[begin : token.end()]]), True
    return "".join([*parts, text[begin:]]), False


def _escaped(found: re.Match[str]) -> str:
    return found[1] or "\\\\"


def _is_json(text: str) -> bool:
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _rule(text: str, at: int, message: str) -> str:
    """The place of a fault, and the rule of JSON that is broken there."""
    place = f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"
    if message.startswith("Invalid \\u"):
        return f"{place}: invalid escape \\u in a string; it takes four hexadecimal digits"
    if message.startswith("Invalid \\"):
        escape = text[at : at + 2].strip()
        return f"{place}: invalid escape {escape} in a string; write \\{escape}"
    more = '; a quote in a string is written \\"' if "','" in message else ""
    return f"{place}: {message}, found {text[at : at + 12]!r}{more}"


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
