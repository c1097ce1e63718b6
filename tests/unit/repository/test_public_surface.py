"""What users build on, by name, is what `tests/golden/public.txt` lists: a removal is a line in the review.

`WARPSMITH_WRITE_GOLDEN=1 pytest tests/unit/repository/test_public_surface.py` writes it anew. CONTRIBUTING.md
says what has to come before a removal.
"""

import inspect
import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import typer.main

import warpsmith
from warpsmith.cli.app import app
from warpsmith.domain.jobs.job import Job
from warpsmith.settings import Settings

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
PUBLIC = GOLDEN / "public.txt"
STARS: dict[int, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def command_lines(command: Any, name: str) -> Iterator[str]:
    """A line for each command, and for each of its arguments and options."""
    yield name
    for param in command.params:
        words = "/".join([*param.opts, *param.secondary_opts])
        kind = words if param.param_type_name == "option" else f"argument {param.name}"
        again = ", repeated" if param.multiple or param.nargs < 0 else ""
        needed = ", required" if param.required else ""
        yield f"{name} {kind}: {param.type.name}{again}{needed}"
    for word, sub in getattr(command, "commands", {}).items():
        yield from command_lines(sub, f"{name} {word}")


def route_lines() -> Iterator[str]:
    """A line for each route and for each of its parameters, from the description that the API is held to."""
    for path, item in json.loads((GOLDEN / "openapi.json").read_text())["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}"
            for parameter in operation.get("parameters", ()):
                needed = ", required" if parameter.get("required") else ""
                yield f"{method.upper()} {path} {parameter['in']} {parameter['name']}{needed}"


def form_lines() -> Iterator[str]:
    """A line for each field of a job and of what it consists of."""
    schema = Job.model_json_schema()
    for name, part in [("Job", schema), *schema["$defs"].items()]:
        for field in part.get("properties", ()):
            needed = ", required" if field in part.get("required", ()) else ""
            yield f"{name}.{field}{needed}"
        for value in part.get("enum", ()):
            yield f"{name} = {value}"


def call_of(function: Any) -> str:
    """Parameters of a function, in the form of a call; those with a default end in `=`."""
    words = []
    for param in inspect.signature(function).parameters.values():
        star = STARS.get(param.kind, "")
        only = " (by name)" if param.kind is param.KEYWORD_ONLY else ""
        words.append(f"{star}{param.name}{'' if param.default is param.empty else '='}{only}")
    return f"({', '.join(words)})"


def python_lines() -> Iterator[str]:
    """A line for each public name of the package, and for each public member of a class, with parameters."""
    for name in warpsmith.__all__:
        found = getattr(warpsmith, name)
        yield f"warpsmith.{name}{call_of(found) if inspect.isfunction(found) else ''}"
        if not isinstance(found, type):
            continue
        ours = [base for base in found.__mro__ if base.__module__.startswith("warpsmith.")]
        for member in sorted({m for base in ours for m in vars(base) if m == "__init__" or m[0] != "_"}):
            value = getattr(found, member, None)
            if inspect.isfunction(value) or inspect.ismethod(value):
                yield f"warpsmith.{name}.{member}{call_of(value)}"
            elif isinstance(value, property | cached_property):
                yield f"warpsmith.{name}.{member}"


def surface() -> str:
    """All lines by kind, in order."""
    kinds = {
        "command line": command_lines(typer.main.get_command(app), "warpsmith"),
        "HTTP API": route_lines(),
        "form of a job": form_lines(),
        "Python": python_lines(),
        "settings": (f"WARPSMITH_{name.upper()}" for name in Settings.model_fields),
    }
    return "".join(f"{kind} | {line}\n" for kind, lines in kinds.items() for line in sorted(set(lines)))


def test_the_public_surface_is_the_golden_one() -> None:
    found = surface()
    if os.environ.get("WARPSMITH_WRITE_GOLDEN") == "1":
        PUBLIC.write_text(found)
    golden = set(PUBLIC.read_text().splitlines())
    removed = sorted(golden - set(found.splitlines()))
    assert removed == [], "was it deprecated first? CONTRIBUTING.md, Versions"
    assert sorted(set(found.splitlines()) - golden) == [], "new; write the golden file anew"


@pytest.mark.parametrize(
    "line",
    [
        "command line | warpsmith keys rotate --grace-s: float range",
        "command line | warpsmith tune argument job: file, required",
        "HTTP API | POST /v1/jobs",
        "form of a job | Job.name, required",
        "form of a job | Budget.trials",
        "form of a job | Backend = cuda",
        "Python | warpsmith.Client.submit(self, job, key=, priority=, check= (by name))",
        "settings | WARPSMITH_DATABASE_URL",
    ],
)
def test_each_kind_is_listed(line: str) -> None:
    assert line in surface().splitlines()
