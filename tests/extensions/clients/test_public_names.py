"""`import warpsmith`: what it offers, what each name says of itself, and what it does not load."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import warpsmith
from testbed.deadlines import HANGS_S

NAMES = [name for name in warpsmith.__all__ if name != "__version__"]
SERVER_SIDE = {"celery", "fastapi", "sqlalchemy", "optuna", "uvicorn", "alembic"}
PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"


def loaded_by(program: str) -> set[str]:
    """Modules that a new interpreter has after a program, besides those it has anyway."""
    after = "print(json.dumps(sorted(set(sys.modules) - before)))"
    text = f"import json, sys\nbefore = set(sys.modules)\n{program}\n{after}"
    ran = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    return set(json.loads(ran.stdout.splitlines()[-1]))


def public_members(kind: type) -> dict[str, object]:
    """Public methods and properties that a class of ours defines, by name."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("warpsmith.")]
    members = {name: value for base in reversed(ours) for name, value in vars(base).items()}
    public = {n: v for n, v in members.items() if n == "__init__" or not n.startswith("_")}
    return {n: v for n, v in public.items() if callable_part(v) is not None}


def callable_part(member: object) -> object:
    """The function behind a method, a class method or a property; None for anything else."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member if inspect.isfunction(member) else None


def lacking(name: str, function: object) -> list[str]:
    """What a public function does not say: its purpose, or a type."""
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    untyped = [p.name for p in parameters if p.name not in ("self", "cls") and p.annotation is p.empty]
    words = [f"{name}: {p} has no type" for p in untyped]
    if inspect.signature(function).return_annotation is inspect.Signature.empty:
        words.append(f"{name} does not say what it returns")
    return words if inspect.getdoc(function) else [*words, f"{name} has no docstring"]


def test_the_import_alone_loads_nothing_else() -> None:
    assert loaded_by("import warpsmith") <= {
        "warpsmith",
        "warpsmith.version",
        "typing",
        *loaded_by("import typing"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_loads_no_part_of_a_server(name: str) -> None:
    modules = loaded_by(f"import warpsmith\nwarpsmith.{name}")
    assert len(modules) > 1
    assert {m.split(".")[0] for m in modules} & SERVER_SIDE == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is_with_types(name: str) -> None:
    value = getattr(warpsmith, name)
    assert inspect.getdoc(value)
    assert value.__module__.startswith("warpsmith.")
    if not inspect.isclass(value):
        assert lacking(name, value) == []
        return
    found = [
        words
        for n, member in public_members(value).items()
        for words in lacking(f"{name}.{n}", callable_part(member))
    ]
    assert found == []


def test_every_name_can_be_listed_and_no_other_is_there() -> None:
    assert set(warpsmith.__all__) <= set(dir(warpsmith))
    assert sorted(warpsmith.__all__) == warpsmith.__all__
    with pytest.raises(AttributeError, match="module 'warpsmith' has no attribute 'Kernal'"):
        getattr(warpsmith, "Kernal")  # noqa: B009


def test_names_are_those_of_their_modules() -> None:
    from warpsmith.domain.jobs.job import Job
    from warpsmith.errors import InvalidInput

    assert warpsmith.Job is Job
    assert warpsmith.InvalidInput is InvalidInput


def test_the_page_lists_every_public_name() -> None:
    text = PAGE.read_text()
    assert [name for name in warpsmith.__all__ if f"`{name}" not in text] == []
