"""Texts that the other launches of a sequence run, which a rewrite of one launch must leave as they are."""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from warpsmith.domain.device import Backend
from warpsmith.source.tree.syntax_tree import Source, ancestors, find, plain

_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ITEMS = ("declaration", "field_declaration", "type_definition", "alias_declaration", "struct_specifier")


_COMMON = frozenset(
    _WORD.findall(
        "auto bool char const constexpr double enum extern float half inline int long short signed size_t "
        "static struct template typedef typename uint union unsigned using void volatile constant global "
        "__constant __constant__ __device__ __global __shared__"
    )
)
"""Words that say nothing about which declaration a function uses."""


def disturbed(
    before: str, after: str, backend: Backend, library: Sequence[str], others: Sequence[str]
) -> str:
    """The first of the entries `others` that runs another text after a rewrite; empty if none does.

    Raises:
        LookupError: an entry is not found.
    """
    for entry in others:
        if _run_by(before, backend, library, entry) != _run_by(after, backend, library, entry):
            return entry
    return ""


def _run_by(text: str, backend: Backend, library: Sequence[str], entry: str) -> frozenset[str]:
    """The functions, macros and declarations that an entry may use, as texts."""
    source = Source(text, backend, entry, tuple(library))
    found = {plain(_whole(function)) for function in source.reachable}
    items = [*_macros(source.text), *_declarations(source.kernel)]
    words: set[str] = set()
    while words != (seen := {word for part in found for word in _WORD.findall(part)}):
        words = seen
        found |= {item for names, item in items if names & words}
    return frozenset(found)


def _whole(function: Node) -> Node:
    parent = function.parent
    return parent if parent is not None and parent.type == "template_declaration" else function


def _macros(text: str) -> Iterator[tuple[set[str], str]]:
    for match in _DEFINITION.finditer(text):
        yield {match[1]}, match[0]


def _declarations(kernel: Node) -> Iterator[tuple[set[str], str]]:
    """Declarations outside of functions, with all their words: too many rather than too few."""
    root = [kernel, *ancestors(kernel)][-1]
    for node in find(root, *_ITEMS):
        if all(a.type != "function_definition" for a in ancestors(node)):
            yield set(_WORD.findall(plain(node))) - _COMMON, plain(node)
