"""Calls of a model over HTTP. Reports the outcome and decides nothing."""

import email.utils
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from agents.providers.step_record import storable
from agents.questions.functions import FunctionCall
from agents.questions.prompting import Message
from warpsmith.extras import naming_extras
from warpsmith.system.progress_marker import PROGRESS

GRACE_S = 0.5
"""Seconds after which a call is ended that exceeded the client's own deadline."""
MAX_BODY_BYTES = 16 << 20
"""Limit on a response's body, after decompression."""
MAX_COUNT = 1 << 24
"""Largest token count that is believed: no context is as large, and a job's sum fits its column."""
ERROR_FIELDS = ("error", "message", "detail")
"""Fields in which servers report an error, the outermost first."""
MAX_PAUSE_S = 1e6


class ReplyForm(Enum):
    """Ways of asking for the reply's form, best first."""

    SCHEMA = "json_schema"
    JSON = "json_object"
    TEXT = "text"

    @property
    def weaker(self) -> "ReplyForm | None":
        """The next weaker form."""
        forms = list(ReplyForm)
        place = forms.index(self) + 1
        return forms[place] if place < len(forms) else None


@dataclass(frozen=True)
class ModelCall:
    """A request to a model."""

    model: str
    messages: Sequence[Message]
    max_tokens: int
    form: ReplyForm
    schema_name: str
    schema: dict[str, Any]
    timeout_s: float
    newer: bool = False
    """True if the server requires `max_completion_tokens`."""
    functions: Sequence[dict[str, Any]] = ()
    """Functions that the model may call; with them `form` has no effect, since its answer is one of them."""
    cache_key: str = ""
    """Same for all calls that begin alike, for servers that keep prompts; empty: not sent."""


@dataclass(frozen=True)
class Completion:
    """A model's reply. Token counts are None if the server does not report them."""

    text: str
    prompt_tokens: int | None
    reply_tokens: int | None
    cut: bool = False
    """True if the reply was cut off at its token limit."""
    calls: tuple[FunctionCall, ...] = ()
    """Functions that it calls."""
    cached_tokens: int = 0
    """Tokens of the prompt that the server had kept."""
    written_tokens: int = 0
    """Tokens of the prompt that the server keeps from now on."""


class CallFailed(Exception):
    """A call without a completion.

    Args:
        reason: text for the record, without secrets.
        again: True if another call may succeed.
        lost: True if the server may have done the work and may charge for it.
        retry_after_s: pause that the server asked for.
        unsupported: True if the server does not know a feature of the request.
    """

    def __init__(
        self,
        reason: str,
        *,
        again: bool = False,
        lost: bool = False,
        retry_after_s: float | None = None,
        unsupported: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.lost = lost
        self.retry_after_s = retry_after_s
        self.unsupported = unsupported


class ModelTransport(Protocol):
    """Sends calls to a model."""

    def complete(self, call: ModelCall) -> Completion:
        """The model's reply.

        Raises:
            CallFailed: there is no reply.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class OpenAITransport:
    """Transport to any server with OpenAI's chat completions.

    Args:
        base_url: URL of the server, set by the operator and never by a job.
        key: API key, sent to that server only.
    """

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url = base_url
        self._key = key
        self._client = self._open()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="model")

    def _open(self) -> Any:
        with naming_extras():
            import openai

        # Retries cost money; the caller counts them.
        # A redirect would send a user's kernel to wherever the server says.
        hooks = {"response": [_limit_body]}
        http = openai.DefaultHttpxClient(follow_redirects=False, event_hooks=hooks)
        key = self._key or "none"
        return openai.OpenAI(base_url=self._base_url, api_key=key, max_retries=0, http_client=http)

    def close(self) -> None:
        """See `ModelTransport`."""
        self._client.close()
        self._threads.shutdown(wait=False)

    def complete(self, call: ModelCall) -> Completion:
        """See `ModelTransport`.

        The deadline covers the whole call. The client's own timeout covers each read only, and a server that
        sends a space now and then never exceeds that.
        """
        PROGRESS.moved()
        sent = self._threads.submit(self._complete, call)
        try:
            return sent.result(call.timeout_s + GRACE_S)
        except TimeoutError as exc:
            self.close()
            self._client = self._open()
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="model")
            raise _late(call) from exc

    def _complete(self, call: ModelCall) -> Completion:
        import openai

        try:
            return self._completion(self._client.chat.completions.create(**_arguments(call)))
        except openai.APITimeoutError as exc:
            raise _late(call) from exc
        except openai.APIStatusError as exc:
            raise CallFailed(
                self._shown(f"HTTP {exc.status_code}: {_error_words(exc.body) or exc.message}"),
                again=exc.status_code in (408, 409, 425, 429) or exc.status_code >= 500,
                retry_after_s=_retry_after_s(exc.response.headers),
                unsupported=exc.status_code in (400, 404, 415, 422, 501),
            ) from exc
        except openai.APIConnectionError as exc:
            sent = type(exc.__cause__).__name__ not in ("ConnectError", "ConnectTimeout")
            reason = f"the server cannot be reached ({type(exc.__cause__).__name__})"
            raise CallFailed(reason, again=True, lost=sent) from exc
        except (openai.OpenAIError, ValueError, TypeError, LookupError, RecursionError) as exc:
            reason = f"the server's answer is no completion ({type(exc).__name__})"
            raise CallFailed(reason, again=True, lost=True) from exc

    def _completion(self, reply: Any) -> Completion:
        choices = getattr(reply, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        text = _joined(getattr(message, "content", None)) or _joined(getattr(message, "refusal", None))
        calls = _calls(getattr(message, "tool_calls", None))
        for part in [reply, choices[0]] if choices else [reply]:
            extra = getattr(part, "model_extra", None) or {}
            if not (text or calls) and any(map(extra.get, ERROR_FIELDS)):
                words = self._shown(f"the server reports an error: {_error_words(extra)}")
                raise CallFailed(words, again=True)
        if not choices:
            raise CallFailed("the server's answer is no completion (no choices)", again=True, lost=True)
        usage = getattr(reply, "usage", None)
        details = getattr(usage, "prompt_tokens_details", None)
        return Completion(
            text=text,
            prompt_tokens=_count(getattr(usage, "prompt_tokens", None)),
            reply_tokens=_count(getattr(usage, "completion_tokens", None)),
            cut=getattr(choices[0], "finish_reason", None) == "length",
            calls=calls,
            cached_tokens=_count(getattr(details, "cached_tokens", None)) or 0,
            written_tokens=_count(getattr(details, "cache_write_tokens", None)) or 0,
        )

    def _shown(self, words: str) -> str:
        """Words of a server, shortened and without the key, which some servers quote."""
        return _text(words.replace(self._key, "[secret]") if self._key else words)[:300]


def _limit_body(response: Any) -> None:
    """Stops reading a body that exceeds the limit."""
    read = response.iter_bytes

    def limited() -> Iterator[bytes]:
        left = MAX_BODY_BYTES
        for part in read():
            left -= len(part)
            if left < 0:
                reason = f"the server's answer has more than {MAX_BODY_BYTES >> 20} MiB"
                raise CallFailed(reason, again=True, lost=True)
            yield part

    response.iter_bytes = limited


def _late(call: ModelCall) -> CallFailed:
    return CallFailed(f"no reply within {call.timeout_s:g} s", again=True, lost=True)


def _arguments(call: ModelCall) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": call.model,
        "messages": [m.sent() for m in call.messages],
        "max_completion_tokens" if call.newer else "max_tokens": call.max_tokens,
        "timeout": call.timeout_s,
    }
    if call.cache_key:
        arguments["prompt_cache_key"] = call.cache_key
    if call.functions:
        arguments["tools"] = list(call.functions)
    elif call.form is ReplyForm.SCHEMA:
        schema = {"name": call.schema_name, "schema": call.schema, "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif call.form is ReplyForm.JSON:
        arguments["response_format"] = {"type": "json_object"}
    return arguments


def _joined(content: object) -> str:
    """The text of a message, which some servers send in parts; parts of another kind are left out."""
    if isinstance(content, list):
        return "".join(map(_joined, content))
    if isinstance(content, dict):
        return _joined(content.get("text")) if content.get("type", "text") in ("text", "output_text") else ""
    return _text(content)


def _error_words(error: Any) -> str:
    """The message of an error as servers send it: a text, or an object around one."""
    while isinstance(error, dict):
        error = next((error[name] for name in ERROR_FIELDS if error.get(name)), str(error))
    return str(error or "")


def _calls(made: Any) -> tuple[FunctionCall, ...]:
    """The function calls of a message; what is no such call has no name, and is refused by it."""
    found = []
    for call in made if isinstance(made, list) else []:
        function = getattr(call, "function", None)
        texts = [getattr(call, "id", ""), getattr(function, "name", ""), getattr(function, "arguments", "")]
        found.append(FunctionCall(*map(_text, texts)))
    return tuple(found)


def _text(text: object) -> str:
    """A text of a server that can be stored; empty if it is no text."""
    return storable(text) if isinstance(text, str) else ""


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def _retry_after_s(headers: Any) -> float | None:
    """The pause that a server asks for; None if it asks for none, or in no known form."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        text = headers.get(name, "")
        try:
            wanted_s = float(text) / unit
        except ValueError:
            try:
                wanted_s = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
            except (ValueError, TypeError, LookupError, ArithmeticError):
                continue
        if not math.isnan(wanted_s):
            return min(max(0.0, wanted_s), MAX_PAUSE_S)
    return None
