"""Calls that keep a rule from moving, repeating or skipping code."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.calls.callees import (
    CallEffect,
    assembly_effect,
    is_of_constant_size,
    known,
)
from warpsmith.extensions.rules.analysis.coordinates import Coordinates
from warpsmith.source.tree.syntax_tree import ancestors, find, plain

_WITH_PARAMETERS = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)\(")
_WITHOUT_PARAMETERS = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+((?:[^\n]*\\\n)*[^\n]*)")
_OF_RULES = "WS_"
_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--")


@dataclass(frozen=True)
class _Way:
    """The way from the code that was asked about to a call."""

    in_order: bool
    seen: set[str]
    bound: Mapping[str, str] = field(default_factory=dict)
    """Names that callers give to template parameters."""
    own: bool = True
    """True in the source, False in a header that it includes."""


class UnsafeCalls(Coordinates):
    """Answers about the functions that a kernel calls."""

    def unsafe(self, node: Node, *, in_order: bool = False) -> str | None:
        """The reason why the code under `node` must not be moved or repeated; None if it may be.

        Args:
            in_order: it is only repeated, or made by other threads, and keeps the order of its accesses.
        """
        return self._unsafe(node, _Way(in_order, set()))

    def _unsafe(self, node: Node, way: _Way) -> str | None:
        for n in find(node, "identifier", "gnu_asm_expression", "call_expression"):
            hiding = self._hiding if n.type == "identifier" else {}
            if hiding and (what := hiding.get(plain(n))):
                return f"the macro {plain(n)} {what}"
            if n.type == "gnu_asm_expression" and not _allowed(assembly_effect(plain(n)), way):
                return "it has inline assembly"
            if n.type == "call_expression" and (reason := self._call_unsafe(n, way)):
                return reason
        return None

    def _call_unsafe(self, call: Node, way: _Way) -> str | None:
        name = self.source.callee(call)
        name = way.bound.get(name, name)
        if name in way.seen:
            return None
        callee, defined = known(name), self.source.definitions(name)
        own = bool(defined) or name in self._macro_names
        if callee is not None and not (own and callee.effect is CallEffect.VALUE):
            if not _allowed(callee.effect, way):
                return f"it calls {name}, {callee.reason}{self._from_macro(name)}"
            if callee.writes and not is_of_constant_size(self.source, call):
                return f"it calls {name} for a size that is not constant"
            return None
        if self.is_type(name, call):
            return None
        way.seen.add(name)
        return self._callee_unsafe(call, name, way)

    def _callee_unsafe(self, call: Node, name: str, way: _Way) -> str | None:
        bodies = [(b, True) for b in self.source.definitions(name)]
        bodies = bodies or [(b, False) for b in self.source.library_definitions(name)]
        if not bodies and not (way.own and self._is_local_object(name, call)):
            return None if self._is_struct(name) else self._macro_unsafe(name)
        for body, is_own in bodies:
            inner = self.source.bound_names(body, call, way.bound)
            reason = self._unsafe(body, _Way(way.in_order, way.seen, inner, is_own))
            if reason:
                return f"{reason} (in {name})"
            if "__shared__" in plain(body):
                return f"{name} uses shared memory"
        return None

    def may_assign(self, call: Node) -> bool:
        """True for a use of a macro that may assign to its arguments."""
        return self.source.callee(call) in self._macro_names and self.unsafe(call) is not None

    def waits(self, node: Node) -> list[Node]:
        """Calls and assembly under `node` that wait for other grids, maybe in what they call."""
        return [n for n in find(node, "gnu_asm_expression", "call_expression") if self._waits(n)]

    def _waits(self, n: Node) -> bool:
        if n.type == "gnu_asm_expression":
            return assembly_effect(plain(n)) is CallEffect.WAITS
        return n.type == "call_expression" and self._reaches_wait(self.source.callee(n))

    def _reaches_wait(self, name: str) -> bool:
        """True if a function waits, or one that it calls, however far away."""
        todo, seen = [name], {name}
        while todo:
            current = todo.pop()
            callee = known(current)
            if callee is not None and callee.effect is CallEffect.WAITS:
                return True
            if callee is None:
                if current not in self._contents:
                    self._contents[current] = self._content(current)
                waits, called = self._contents[current]
                if waits:
                    return True
                todo += called - seen
                seen |= called
        return False

    @cached_property
    def _contents(self) -> dict[str, tuple[bool, frozenset[str]]]:
        """Functions asked about so far, with True for assembly that waits, and the names that each calls."""
        return {}

    def _content(self, name: str) -> tuple[bool, frozenset[str]]:
        bodies = [*self.source.definitions(name), *self.source.library_definitions(name)]
        inside = [n for body in bodies for n in find(body, "gnu_asm_expression", "call_expression")]
        assembly = (plain(n) for n in inside if n.type == "gnu_asm_expression")
        calls = (self.source.callee(n) for n in inside if n.type == "call_expression")
        return any(assembly_effect(a) is CallEffect.WAITS for a in assembly), frozenset(calls)

    def is_type(self, name: str, call: Node) -> bool:
        """True for `fp(x)` and `(fp)(x)` if `fp` is a type: of a template, an alias, or without
        constructors."""
        word = re.fullmatch(r"\((\w+)\)|(\w+)", name)
        if word is None:
            return False
        kind = word.group(1) or word.group(2)
        for around in ancestors(call):
            if around.type != "template_declaration":
                continue
            listed = around.child_by_field_name("parameters")
            if listed is not None and re.search(rf"\b(?:typename|class)\s+{kind}\b", plain(listed)):
                return True
        return any(_names_type(text, kind) for text in (self.source.text, *self.source.library))

    def _is_struct(self, name: str) -> bool:
        """True for a class of the source; its constructors with a body are definitions of the name."""
        head = (
            rf"\b(?:struct|class|union)\b[^;{{}}=]*?[\s)]{re.escape(name)}\s*(?:final\s*)?(?::[^:;{{}}]*)?\{{"
        )
        return any(re.search(head, text) for text in (self.source.text, *self.source.library))

    def _is_local_object(self, name: str, call: Node) -> bool:
        """True for a call of a local lambda (whose body is walked in place) or of a plain object."""
        v = self.source.lookup(name, call)
        return v is not None and not v.is_pointer and not v.is_parameter

    @cached_property
    def _macro_names(self) -> frozenset[str]:
        """Macros with a list of parameters, of the source and of its headers."""
        texts = (self.source.text, *self.source.library)
        return frozenset().union(*(_with_parameters(text) for text in texts))

    @cached_property
    def _hiding(self) -> dict[str, str]:
        """Macros without parameters that could not be written out, with what they hide."""
        found: dict[str, str] = {}
        for text in (self.source.text, *self.source.library):
            found |= _hiding_in(text)
        return found

    def _macro_unsafe(self, name: str) -> str | None:
        """The reason why a macro may not move; None if it assigns nothing and calls pure functions only."""
        pattern = rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\([^)]*\)((?:[^\n]*\\\n)*[^\n]*)"
        bodies = [
            b for text in (self.source.text, *self.source.library) for b in re.findall(pattern, text, re.M)
        ]
        for body in bodies:
            if _ASSIGNS.search(body):
                return f"the macro {name} assigns"
            for word in re.findall(r"(\w+)\s*\(", body):
                callee = known(word)
                if callee is None or callee.effect is not CallEffect.VALUE:
                    why = "whose definition is not in the source" if callee is None else callee.reason
                    return f"it calls {word}, {why} (in {name})"
        missing = f"it calls {name}, whose definition is not in the source{self._from_macro(name)}"
        return None if bodies else missing

    def _from_macro(self, name: str) -> str:
        macro = self.source.macros.get(name)
        return "" if macro is None else f" (in {macro})"


@lru_cache(maxsize=64)
def _with_parameters(text: str) -> frozenset[str]:
    return frozenset(n for n in _WITH_PARAMETERS.findall(text) if not n.startswith(_OF_RULES))


@lru_cache(maxsize=64)
def _hiding_in(text: str) -> Mapping[str, str]:
    found = ((n, _hidden_by(body)) for n, body in _WITHOUT_PARAMETERS.findall(text))
    return {name: what for name, what in found if what and not name.startswith(_OF_RULES)}


def _hidden_by(body: str) -> str:
    if _ASSIGNS.search(body):
        return "assigns"
    return "reads memory" if re.search(r"\w\s*\[|->", body) else ""


def _allowed(effect: CallEffect, way: _Way) -> bool:
    return effect in (CallEffect.VALUE, CallEffect.HINT) or (effect is CallEffect.WAITS and way.in_order)


@lru_cache(maxsize=1 << 12)
def _names_type(text: str, kind: str) -> bool:
    """True if a text has an alias or a macro of this name for a type."""
    if kind not in text:
        return False
    typed = rf"(?m)\btypedef\s[^;{{}}()]*\b{kind}\s*;|\busing\s+{kind}\s*=[^;()]*;"
    typed += (
        rf"|^[ \t]*#[ \t]*define[ \t]+{kind}[ \t]+(?:float|double|half|int|uint|long)[ \t]*(?://.*|/\*.*)?$"
    )
    return re.search(typed, text) is not None
