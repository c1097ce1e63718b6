"""Job files: YAML or JSON into a `Job`, with errors that name the field and the fix."""

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from warpsmith.domain.job import Job
from warpsmith.domain.kernel import MAX_SOURCE_BYTES
from warpsmith.errors import InvalidInput

MAX_PROBLEMS = 8


def load_job(path: Path) -> Job:
    """The job of a file; its `source_file` is read, relative to the job file.

    Raises:
        InvalidInput: what is wrong with which field.
    """
    return parse_job(read_document(path), path.parent)


def read_document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file.

    Raises:
        InvalidInput: no such file, or not a mapping; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(str(path), f"cannot be read: {exc}") from exc
    try:
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except json.JSONDecodeError as exc:
        raise InvalidInput(str(path), f"line {exc.lineno}: {exc.msg}") from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise InvalidInput(str(path), f"{where}{getattr(exc, 'problem', None) or 'not valid YAML'}") from exc
    except RecursionError as exc:
        raise InvalidInput(str(path), "is nested too deeply") from exc
    except ValueError as exc:  # a date that is none, a number of thousands of digits
        raise InvalidInput(str(path), f"cannot be read: {exc}") from exc
    if not isinstance(data, dict):
        raise InvalidInput(str(path), "must hold a mapping with the fields of a job")
    return data


def parse_job(data: Mapping[str, Any], folder: Path | None = None) -> Job:
    """A job from plain data.

    Args:
        folder: where `kernel.source_file` is looked for; None: files are not read.

    Raises:
        InvalidInput: what is wrong with which field.
    """
    kernel = data.get("kernel")
    if folder is not None and isinstance(kernel, Mapping) and kernel.get("source") is None:
        name = kernel.get("source_file")
        if isinstance(name, str):
            inline = {k: v for k, v in kernel.items() if k != "source_file"}
            data = {**data, "kernel": {**inline, "source": _read_source(folder / name)}}
    try:
        return Job.model_validate(dict(data))
    except ValidationError as exc:
        problems = field_problems(exc.errors(), Job)
        field, message = problems[0]
        rest = "".join(f"\n{f}: {m}" if f else f"\n{m}" for f, m in problems[1:MAX_PROBLEMS])
        raise InvalidInput(field, message + rest) from exc


def field_problems(problems: Iterable[Mapping[str, Any]], model: type[BaseModel]) -> list[tuple[str, str]]:
    """Dotted field and message of every problem; an unknown field comes with the nearest known one.

    Args:
        problems: as pydantic lists them (`ValidationError.errors`).
        model: whose field names may be meant.
    """
    listed = list(problems)
    found = []
    for problem in listed:
        if problem["type"] == "too_short" and _has_inner(problem["loc"], listed):
            continue
        place = [str(part) for part in problem["loc"]]
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(place[-1], _known_fields(model), n=1)
            message = "no such field" + (f"; did you mean {near[0]!r}?" if near else "")
        elif problem["type"] == "missing":
            message = "is missing"
        field, _, rest = message.partition(": ")
        if rest and _is_path(field):
            place, message = [*place, field], rest
        found.append((".".join(place), message))
    return found


def _has_inner(place: tuple[int | str, ...], problems: Iterable[Mapping[str, Any]]) -> bool:
    """Pydantic calls a list too short when its items are wrong; the items say enough."""
    return any(len(p["loc"]) > len(place) and p["loc"][: len(place)] == place for p in problems)


def _is_path(text: str) -> bool:
    return bool(text) and all(part.isidentifier() or part.isdigit() for part in text.split("."))


def _known_fields(model: type[BaseModel]) -> Iterable[str]:
    """Names of all fields anywhere in the schema."""
    schema = model.model_json_schema()
    known: set[str] = set(schema.get("properties", {}))
    for definition in schema.get("$defs", {}).values():
        known |= set(definition.get("properties", {}))
    return known


def _read_source(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > MAX_SOURCE_BYTES:
            raise InvalidInput(
                "kernel.source_file", f"{path} has {len(data)} bytes; at most {MAX_SOURCE_BYTES}"
            )
        return data.decode()
    except (OSError, ValueError) as exc:
        raise InvalidInput("kernel.source_file", f"{path} cannot be read: {exc}") from exc
