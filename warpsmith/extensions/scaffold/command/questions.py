"""Questions of `init` at a terminal: sizes, numbers and the launch, for which the job file has guesses."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from warpsmith.domain.expressions import Expression
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_flow
from warpsmith.job_files.jobfile import InvalidJob, JobFile
from warpsmith.job_files.yaml_data import read_yaml

_MARK = re.compile(rf"^(?P<held>\s*[^#\s].*?)\s+# {TODO}\b.*$")
_LAUNCH = {"grid": "blocks along x, y, z", "block": "threads along x, y, z, such as 64 or 16, 16"}
Ask = Callable[[str, str], str]
"""Asks one question: its words and the guess; returns what was typed, the guess for nothing.

`EOFError` leaves this question and all that follow as they are."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class _Question:
    row: int
    path: tuple[str | int, ...]
    words: str
    guess: str
    is_list: bool = False


def answered(text: str, target: Path, ask: Ask, say: Say, include_dirs: Sequence[Path] = ()) -> str:
    """A job file with a user's answers in the place of guesses; answered lines lose their mark.

    Args:
        text: the job file, as `init` writes it.
        target: where it will lie.
        include_dirs: folders from which the job may name files, that of its source among them.
        say: told why an answer is not taken; it is then asked again.
    """
    rows = text.split("\n")
    for at in range(len(rows)):
        marked = _MARK.match(rows[at])
        if marked is None:
            continue
        try:
            if _asked(rows, at, ask, lambda: _problems(rows, target, include_dirs), say):
                rows[at] = _MARK.sub(r"\g<held>", rows[at])
        except EOFError:
            break
    return "\n".join(rows)


def _asked(rows: list[str], at: int, ask: Ask, problems: Callable[[], set[str]], say: Say) -> bool:
    """Ask all that a line leaves open, and change it; False if that is nothing."""
    questions = list(_questions(rows, at))
    original = rows[at]
    before = problems() if questions else set()
    try:
        for question in questions:
            while True:
                kept = rows[at]
                try:
                    given = ask(question.words, question.guess)
                    if given != question.guess:
                        _write(rows, question, given, _names(rows))
                        new = sorted(problems() - before)
                        if new:
                            raise InvalidInput("", new[0])
                    break
                except InvalidInput as exc:
                    rows[at] = kept
                    say(exc.message)
    except EOFError:
        rows[at] = original
        raise
    return bool(questions)


def _questions(rows: list[str], at: int) -> Iterator[_Question]:
    held = _held(rows[at])
    known = ", ".join(sorted(_names(rows))) or "no names"
    match held:
        case [{"dimensions": dict(sizes)}]:
            for name, size in sizes.items():
                yield _Question(at, (0, "dimensions", name), f"{name}, a size: a whole number", str(size))
        case [{"name": name, "role": "scalar", "dtype": dtype, "value": value}] if dtype != TODO:
            offered = "true or false" if dtype == "bool" else f"a number, or an expression of {known}"
            yield _Question(at, (0, "value"), f"{name} ({dtype}): {offered}", str(value))
        case {"grid": list(extents)} | {"block": list(extents)}:
            key = next(iter(held))
            guess = ", ".join(map(str, extents))
            words = f"{key}: {_LAUNCH[key]}; numbers, or expressions of {known}"
            yield _Question(at, (key,), words, guess, is_list=True)


def _held(row: str) -> Any:
    marked = _MARK.match(row)
    try:
        return read_yaml(marked["held"].strip()) if marked else None
    except yaml.YAMLError:
        return None


def _names(rows: list[str]) -> set[str]:
    """Names of the job's dimensions and parameters."""
    data = read_yaml("\n".join(rows))
    sizes = data["workloads"][0]["dimensions"]
    return {*sizes, *(p["name"] for p in data.get("parameters") or ())}


def _write(rows: list[str], question: _Question, given: str, names: set[str]) -> None:
    """Put an answer into its line.

    Raises:
        InvalidInput: it is no number and no expression of known names.
    """
    is_size = "dimensions" in question.path
    if question.is_list:
        parts = [_value(part, names) for part in _extents(given)]
        if not 1 <= len(parts) <= 3:
            raise InvalidInput("", "give one to three extents, with commas between")
        value: Any = parts
    else:
        value = _value(given, set() if is_size else names)
    if is_size and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InvalidInput("", f"{given!r} is not a whole number above 0")
    held = _held(rows[question.row])
    place = held
    for step in question.path[:-1]:
        place = place[step]
    place[question.path[-1]] = value
    rows[question.row] = _row(rows[question.row], held)


def _row(row: str, held: Any) -> str:
    start = row[: len(row) - len(row.lstrip())]
    comment = row[len(_MARK.match(row)["held"]) :] if _MARK.match(row) else ""  # type: ignore[index]
    if isinstance(held, dict):
        key, value = next(iter(held.items()))
        return f"{start}{key}: {_flow(value)}{comment}"
    (item,) = held
    if list(item) == ["dimensions"]:
        return f"{start}- dimensions: {_flow(item['dimensions'])}{comment}"
    return f"{start}- {_flow(item)}{comment}"


def _flow(value: Any) -> str:
    return yaml_flow({"v": value})[len("{v: ") : -1]


def _extents(text: str) -> list[str]:
    """Parts between commas outside of brackets."""
    parts, depth = [""], 0
    for c in text.strip().removeprefix("[").removesuffix("]") if text.strip()[:1] == "[" else text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def _value(text: str, names: set[str]) -> int | float | bool | str:
    words = text.strip()
    if words in ("true", "false"):
        return words == "true"
    for kind in (int, float):
        try:
            return kind(words)
        except ValueError:
            continue
    try:
        used = Expression(words).names
    except ExpressionError as exc:
        raise InvalidInput("", exc.message) from exc
    unknown = sorted(n for n in used - names if not n.startswith("device."))
    if unknown:
        known = ", ".join(sorted(names)) or "none"
        raise InvalidInput("", f"unknown name {unknown[0]!r} (known: {known})")
    return words


def _problems(rows: list[str], target: Path, include_dirs: Sequence[Path]) -> set[str]:
    """Fields that the form of a job refuses, with the reasons."""
    try:
        JobFile.parsed(target, "\n".join(rows), include_dirs).job()
    except InvalidJob as exc:
        return {f"{f.field}: {f.message}" for f in exc.findings}
    return set()
