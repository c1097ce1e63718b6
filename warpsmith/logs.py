"""Logs: one line per event with its job and task, as text or JSON."""

import logging
import re
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from warpsmith.settings import settings
from warpsmith.system.printable import one_line, printable

_SECRETS = (
    (re.compile(r"(://[^:/@\s]*):[^@/\s]+@"), r"\1:***@"),
    (re.compile(r"\b(ws_[0-9a-z]{12})_[A-Za-z0-9_-]{43}"), r"\1_***"),
    (re.compile(r"\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), r"\1***"),
    (re.compile(r"\b(sk-)[A-Za-z0-9_-]{8,}"), r"\1***"),
    (
        re.compile(
            r"((?:password|passwd|secret|api_?key|token)[\"']?\s*[=:]\s*[\"']?)[^\s\"',&}]+", re.IGNORECASE
        ),
        r"\1***",
    ),
)
"""Patterns of secrets: passwords in URLs, API keys, credentials in headers, model keys, named secrets."""
_QUIET = ("alembic", "celery", "kombu", "httpx", "httpx2", "httpcore", "urllib3")
"""Libraries of which only warnings are logged."""


def configure() -> None:
    """Send all log records to stderr, in the form of `WARPSMITH_LOG_FORMAT`."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
    last: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if settings().log_format == "json":
        last += [structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer()]
    else:
        last += [_TextFormatter()]
    handler = logging.StreamHandler()
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Context in which every record logged by this thread carries these ids (`job=...`, `task=...`)."""
    with structlog.contextvars.bound_contextvars(**ids):
        yield


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Masks secrets in a log record."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = without_secrets(value)
    return event


def without_secrets(text: str) -> str:
    """The text with everything masked that looks like a secret."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text


class _TextFormatter:
    """Renders a line such as `2026-01-01T00:00:00Z info worker.execute: done job=... task=...`, with a
    traceback below it."""

    def __call__(self, logger: Any, name: str, event: MutableMapping[str, Any]) -> str:
        rest = dict(structlog.processors.format_exc_info(logger, name, event))
        head = [str(rest.pop(key, "")) for key in ("timestamp", "level", "logger")]
        text, trace = rest.pop("event", ""), rest.pop("exception", None)
        ids = "".join(f" {key}={value}" for key, value in rest.items())
        line = one_line(f"{' '.join(head)}: {text}{ids}")
        if trace is None:
            return line
        # Indented, so that no line of a message passes for a record.
        shown = printable(without_secrets(str(trace))).replace("\n", "\n  ")
        return f"{line}\n  {shown}"
