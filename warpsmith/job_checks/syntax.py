"""Errors of syntax that show without a compiler: in a reference, and in the brackets of a source."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from warpsmith.domain.jobs.job import Job, NumpyReference
from warpsmith.job_files.finding import Finding
from warpsmith.source.lexing.conditionals import given_macros
from warpsmith.source.lexing.tokens import tokenise

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def syntax_findings(job: Job) -> Iterator[Finding]:
    """Errors of syntax in the reference and the kernel's source."""
    if isinstance(job.reference, NumpyReference):
        yield from _reference(job.reference)
    # A header of the operator may define any macro.
    if job.kernel.source and job.kernel.backend.language.is_c_text and not job.kernel.includes:
        yield from _brackets(job, job.kernel.source)


def _reference(reference: NumpyReference) -> Iterator[Finding]:
    try:
        nodes = list(ast.walk(ast.parse(reference.source)))
    except SyntaxError as exc:
        yield Finding("reference.source", f"{exc.msg}, in line {exc.lineno}", inner_line=exc.lineno)
        return
    except (ValueError, RecursionError, MemoryError):
        yield Finding("reference.source", "cannot be read as Python: it is nested too deeply")
        return
    yield from _function(reference.function, nodes)


def _function(name: str, nodes: Sequence[ast.AST]) -> Iterator[Finding]:
    made = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef)}
    named = {n.id for n in nodes if isinstance(n, ast.Name)}
    named |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    if name not in made and not named & {name, "*"}:
        words = f"the source defines no function {name!r}; it has {', '.join(made) or 'none'}"
        yield Finding("reference.function", words)
    elif name in made and not any(isinstance(n, ast.Return | ast.Raise) for n in ast.walk(made[name])):
        words = f"{name} returns nothing; end it with `return`, and a dict of arrays by name"
        yield Finding("reference.source", words, inner_line=made[name].lineno)


def _brackets(job: Job, source: str) -> Iterator[Finding]:
    """The first bracket without a partner, in the text as it is and in what the preprocessor leaves of it."""
    tokens = tokenise(source, given_macros(job.kernel.options))
    defined = [t for text in (source, *job.kernel.files.values()) for t in tokenise(text).items if t.rest]
    if any(_unmatched([(t.rest, 0)]) for t in defined):
        return  # a macro may hold the partner
    plain = [(t.text, t.start) for t in tokens.items if t.kind != "directive"]
    taken = ((tokens.items[n].text, tokens.items[n].start) for n in tokens.forward(0))
    if (found := _unmatched(plain)) and _unmatched(taken):
        line = source.count("\n", 0, found[1]) + 1
        words = "is never closed" if found[0] in _CLOSING else "closes nothing"
        yield Finding("kernel.source", f"{found[0]!r} in line {line} {words}", inner_line=line)


def _unmatched(texts: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
    opened: list[tuple[str, int]] = []
    for text, start in texts:
        for bracket in re.findall(r"[][(){}]", text):
            if bracket in _CLOSING:
                opened.append((bracket, start))
            elif not opened or _CLOSING[opened[-1][0]] != bracket:
                return opened[-1] if opened else (bracket, start)
            else:
                opened.pop()
    return opened[0] if opened else None
