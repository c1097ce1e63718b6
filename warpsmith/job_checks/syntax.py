"""Mistakes that show without a compiler: in a reference, and in the brackets and words of a source."""

import ast
import builtins
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from symtable import SymbolTable, symtable

from tree_sitter import Node

from warpsmith.domain.jobs.job import Job, NumpyReference
from warpsmith.job_files.finding import Finding
from warpsmith.source.lexing.conditionals import given_macros
from warpsmith.source.lexing.tokens import tokenise
from warpsmith.source.tree.syntax_tree import Source, ancestors, find

CUDA_KERNEL = "__global__"
_EXPRESSIONS = {
    *("argument_list", "init_declarator", "return_statement", "subscript_argument_list"),
    *(f"{kind}_expression" for kind in ("assignment", "binary", "conditional", "parenthesized", "subscript")),
    *("unary_expression", "update_expression"),
}
_BUILT_IN = {"blockDim", "blockIdx", "false", "gridDim", "nullptr", "threadIdx", "true", "warpSize"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_PYTHON_NAMES = {"np", "__name__", *dir(builtins)}
"""Names that a reference begins with."""
_DYNAMIC = {"*", "exec", "eval", "globals", "vars"}
"""Names by which a text may define what it does not show."""


def syntax_findings(job: Job) -> Iterator[Finding]:
    """Errors of syntax in the reference and the kernel's source."""
    if isinstance(job.reference, NumpyReference):
        outputs = [a.name for a in job.kernel.declared if a.is_mutated]
        yield from _reference(job.reference, outputs)
    # A header of the operator may define any macro.
    if job.kernel.source and job.kernel.backend.language.is_c_text and not job.kernel.includes:
        yield from _brackets(job, job.kernel.source)
        yield from _words(job, job.kernel.source)
        yield from _misspelt(job, job.kernel.source)


def _reference(reference: NumpyReference, outputs: Sequence[str]) -> Iterator[Finding]:
    try:
        nodes = list(ast.walk(ast.parse(reference.source)))
    except SyntaxError as exc:
        yield Finding("reference.source", f"{exc.msg}, in line {exc.lineno}", inner_line=exc.lineno)
        return
    except (ValueError, RecursionError, MemoryError):
        yield Finding("reference.source", "cannot be read as Python: it is nested too deeply")
        return
    yield from _function(reference.function, nodes, outputs)
    yield from _undefined(reference.source, nodes)


def _function(name: str, nodes: Sequence[ast.AST], outputs: Sequence[str]) -> Iterator[Finding]:
    made = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef)}
    named = {n.id for n in nodes if isinstance(n, ast.Name)}
    named |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    if name not in made and not named & {name, "*"}:
        words = f"the source defines no function {name!r}; it has {', '.join(made) or 'none'}"
        yield Finding("reference.function", words)
    elif name in made and not any(isinstance(n, ast.Return | ast.Raise) for n in ast.walk(made[name])):
        words = f"{name} returns nothing; end it with `return`, and a dict of arrays by name"
        yield Finding("reference.source", words, inner_line=made[name].lineno)
    elif name in made:
        yield from _returned(made[name], outputs)


def _returned(function: ast.FunctionDef, outputs: Sequence[str]) -> Iterator[Finding]:
    """Each output that no dict has that the function returns, if it writes all of them out."""
    values = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    keys = [k for v in values for k in (v.keys if isinstance(v, ast.Dict) else (None,))]
    names = [str(k.value) for k in keys if isinstance(k, ast.Constant)]
    if values and len(names) == len(keys):
        line = min(k.lineno for k in keys if k is not None) if keys else function.lineno
        for output in set(outputs) - set(names):
            given = ", ".join(map(repr, names)) or "nothing"
            words = f"the function returned no {output!r}; it returns {given}"
            yield Finding("reference.source", words, inner_line=line)


def _undefined(source: str, nodes: Sequence[ast.AST]) -> Iterator[Finding]:
    """The first name that no scope of the text defines."""
    made, read = _global_names(symtable(source, "reference", "exec"))
    if _DYNAMIC & (read | {n.name for n in nodes if isinstance(n, ast.alias)}):
        return
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in read - made - _PYTHON_NAMES:
            near = difflib.get_close_matches(node.id, [*made, "np"], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; import or define it"
            words = f"{node.id!r} is not defined, in line {node.lineno}{hint}"
            yield Finding("reference.source", words, inner_line=node.lineno)
            return


def _global_names(top: SymbolTable) -> tuple[set[str], set[str]]:
    """Names of a module that it, or a function with `global`, binds; those that any scope reads."""
    scopes, made, read = [top], set(), set()
    for scope in scopes:
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_global() or scope is top:
                made |= {symbol.get_name()} if symbol.is_assigned() or symbol.is_imported() else set()
                read |= {symbol.get_name()} if symbol.is_referenced() else set()
    return made, read


def _misspelt(job: Job, source: str) -> Iterator[Finding]:
    """The first name that is read, stands nowhere else, and is nearly that of a variable of the text."""
    if re.search(r"#\s*include", source):
        return  # a header may declare it
    try:
        tree = Source(source, job.kernel.backend, job.kernel.entry)
    except (LookupError, RecursionError):
        return
    tokens = tokenise(source).items
    times = Counter(t.text for t in tokens)
    macros = [*job.kernel.options, *job.space.defaults, *(t.rest for t in tokens)]
    words = " ".join((*macros, *job.kernel.files.values()))
    declared = {v.name for v in tree.variables}
    for node in find(tree.root, "identifier"):
        name = tree.of(node)
        if times[name] == 1 and name not in words and not name.isupper() and _is_read(node):
            near = difflib.get_close_matches(name, declared - {name}, n=1, cutoff=0.7)
            if near and name not in declared | _BUILT_IN:
                line = node.start_point.row + 1
                said = f"{name!r} in line {line} is declared nowhere; did you mean {near[0]!r}?"
                yield Finding("kernel.source", said, inner_line=line)
                return


def _is_read(node: Node) -> bool:
    """True for a name in an expression that the parser understood, whatever macros say."""
    around = node.parent
    if around is None or around.type not in _EXPRESSIONS:
        return False
    if any(a.type == "ERROR" or a.type.startswith("preproc_") for a in ancestors(node)):
        return False
    return around.type != "init_declarator" or around.child_by_field_name("value") == node


def _words(job: Job, source: str) -> Iterator[Finding]:
    """CUDA's word for a kernel in a text that is to be OpenCL, and defines no macro for it."""
    if not job.kernel.backend.language.is_opencl_c or re.search(r"\b(__)?kernel\b|#\s*include", source):
        return
    found = next((t for t in tokenise(source).items if t.text == CUDA_KERNEL), None)
    if found is not None:
        line = source.count("\n", 0, found.start) + 1
        words = f"{CUDA_KERNEL} in line {line} of the source is CUDA or HIP; OpenCL has __kernel"
        yield Finding("kernel.backend", words)


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
