"""A Python function as a NumPy reference: its source, which runs elsewhere with nothing but NumPy."""

import ast
import builtins
import dis
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from warpsmith.errors import InvalidInput

FIELD = "reference"
_FUTURE = "from __future__ import annotations\n"
"""Annotations may name what is not sent; nothing evaluates them."""
_IN_JOB_FORM = ("inputs", "dims")
_CALLED = "called_by_name"


@dataclass(frozen=True)
class Names:
    """Names that a reference may take as its parameters.

    Args:
        inputs: arguments that it can be given.
        outputs: arguments that it returns, in the kernel's order.
        dimensions: dimensions of the workloads.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    dimensions: Sequence[str]


def reference_fields(function: Callable[..., Any], names: Names) -> dict[str, str]:
    """The `reference` of a job form that calls a function.

    It takes `(inputs, dims)`, as the job form says, or arguments and dimensions by name. It returns a dict by
    argument, or the outputs in the kernel's order.

    Raises:
        InvalidInput: its source cannot be had, or names what is not sent.
    """
    source, name = _own_source(function)
    imports = "".join(sorted(set(_imports(function, source, name))))
    text = _FUTURE + imports + source
    parameters = inspect.signature(function).parameters
    if tuple(parameters) == _IN_JOB_FORM:
        return {"kind": "numpy", "source": text, "function": name}
    call = _call(function, names)
    return {"kind": "numpy", "source": text + _caller(name, call, names.outputs), "function": _CALLED}


def text_fields(text: str) -> dict[str, str]:
    """The `reference` of a job form with this source: its function `reference`, or its only one.

    Raises:
        InvalidInput: it is not Python, or has no such function.
    """
    try:
        body = ast.parse(text).body
    except SyntaxError as exc:
        raise InvalidInput(FIELD, f"the text is not Python: {exc.msg} in line {exc.lineno}") from exc
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    if FIELD in defined or len(defined) == 1:
        return {"kind": "numpy", "source": text, "function": FIELD if FIELD in defined else defined[0]}
    words = f"the text defines {', '.join(defined) or 'no function'}; call the one that counts `reference`"
    raise InvalidInput(FIELD, words)


def _own_source(function: Callable[..., Any]) -> tuple[str, str]:
    if not inspect.isfunction(function):
        words = f"{type(function).__name__} {_name(function)} has no Python source of its own"
        raise InvalidInput(FIELD, f"{words}; give a function made with def")
    if function.__name__ == "<lambda>":
        raise InvalidInput(FIELD, "a lambda has no source of its own; give a function made with def")
    try:
        source = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError) as exc:
        words = f"the source of {_name(function)} cannot be read here ({exc}); give its text"
        raise InvalidInput(FIELD, words) from exc
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        kind = "is decorated" if isinstance(node, ast.FunctionDef) else "is not made with def"
        raise InvalidInput(FIELD, f"{_name(function)} {kind}; give a plain function")
    if function.__code__.co_freevars:
        free = ", ".join(function.__code__.co_freevars)
        words = f"{_name(function)} uses {free} of the function around it, which is not sent"
        raise InvalidInput(FIELD, f"{words}; put it inside, or make it an argument of the kernel")
    return source if source.endswith("\n") else source + "\n", node.name


def _imports(function: Callable[..., Any], source: str, name: str) -> Iterator[str]:
    """Imports for the names of NumPy that a function finds in its module.

    Raises:
        InvalidInput: it names something else there.
    """
    held = getattr(function, "__globals__", {})
    for used in sorted(set(_globals_of(compile(_FUTURE + source, FIELD, "exec")))):
        if used == name or (used not in held and hasattr(builtins, used)):
            continue
        value = held.get(used)
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == np.__name__:
            yield f"import {value.__name__} as {used}\n"
        elif (home := _home(value)) is not None:
            yield f"from {home[0]} import {home[1]} as {used}\n"
        elif used in held or not hasattr(builtins, used):
            kind = f"the {type(value).__name__} " if used in held else ""
            inside = "import it" if isinstance(value, ModuleType) else "define it"
            words = f"{name} uses {kind}{used} of its module, which is not sent; {inside} inside the function"
            raise InvalidInput(FIELD, words)


def _globals_of(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def _home(value: object) -> tuple[str, str] | None:
    """Module and name under which NumPy has a function or a type."""
    name = getattr(value, "__name__", "")
    for module in (getattr(value, "__module__", None) or "", np.__name__):
        if module.partition(".")[0] == np.__name__ and name.isidentifier():
            found = getattr(importlib.import_module(module), name, None)
            if found is not None and found is value:
                return module, name
    return None


def _call(function: Callable[..., Any], names: Names) -> str:
    given = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            words = f"{_name(function)} takes *{parameter.name}; name the arguments that it needs"
            raise InvalidInput(FIELD, words)
        if parameter.name in names.inputs:
            text = f'inputs["{parameter.name}"]'
        elif parameter.name in names.dimensions:
            text = f'dims["{parameter.name}"]'
        elif parameter.default is not parameter.empty:
            continue
        else:
            known = ", ".join(dict.fromkeys((*names.inputs, *names.dimensions)))
            words = f"{_name(function)} takes {parameter.name}, which is no input and no dimension ({known})"
            raise InvalidInput(FIELD, f"{words}; or take (inputs, dims)")
        keyword = parameter.kind is not parameter.POSITIONAL_ONLY
        given.append(f"{parameter.name}={text}" if keyword else text)
    return ", ".join(given)


def _caller(name: str, call: str, outputs: Sequence[str]) -> str:
    """A function in the job form around one that takes its arguments by name."""
    names = ", ".join(f'"{output}"' for output in outputs)
    one = f'{{"{outputs[0]}": found}}' if len(outputs) == 1 else f"dict(zip(({names}), found, strict=True))"
    return (
        f"\n\ndef {_CALLED}(inputs, dims):\n"
        f"    found = {name}({call})\n"
        f"    return found if isinstance(found, dict) else {one}\n"
    )


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))
