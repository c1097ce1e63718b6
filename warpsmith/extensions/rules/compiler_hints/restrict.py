"""Declares that buffers of a job never overlap."""

import re

from tree_sitter import Node

from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.extensions.rules.analysis.calls.callees import synchronises
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.source.tree.syntax_tree import Edit, Source, Variable, entry_name, find


class Restrict(Rule):
    """Adds `__restrict__` to pointers that the job binds to buffers of their own, and `const` to those never
    written, unless something else in the source relies on the kernel's type, which `const` would change.

    Proven: each parameter of the kernel has one argument of the job, each buffer is separate, and no body of
    the kernel passes values from thread to thread through it.
    """

    name = "restrict"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        source, facts = draft.source, draft.facts
        parameters = [v for v in source.variables if v.is_parameter and v.scope == source.kernel]
        if len(parameters) != len(draft.kernel.arguments):
            return Declined(
                DeclineCode.LAUNCH, "the job's arguments are not one for each parameter of the kernel"
            )
        handed = _handed(facts)
        word = "restrict" if draft.is_opencl else "__restrict__"
        named = _type_is_relied_on(source)
        edits, names = [], []
        for v in (v for v in parameters if v.name not in handed):
            star = _star(source, v)
            if star is None:
                continue
            edits.append(Edit(star.end_byte, star.end_byte, f" {word}"))
            names.append(v.name)
            if not named and _only_read(facts, v):
                kind = v.declaration.child_by_field_name("type")
                assert kind is not None
                edits.append(Edit(kind.start_byte, kind.start_byte, "const "))
        if not edits:
            return Declined(
                DeclineCode.NO_GAIN,
                "every pointer is restrict already, or hands values from thread to thread",
            )
        return draft.changed(RuleChange(self.name, ", ".join(names), edits=edits))


def _star(source: Source, v: Variable) -> Node | None:
    """The `*` of a plain pointer that is not restrict yet; None for any other parameter."""
    is_plain = find(v.declarator, "pointer_declarator") == [v.declarator]
    return None if not is_plain or "restrict" in source.of(v.declarator) else v.declarator.child(0)


def _handed(facts: Facts) -> set[str]:
    """Buffers through which threads may communicate: both written and read in a kernel that synchronises.

    A compiler may cache values read through a restrict pointer even if another thread has written there.
    """
    source = facts.source
    if not any(synchronises(source.callee(c)) for f in source.reachable for c in find(f, "call_expression")):
        return set()
    accesses = list(facts.accesses(source.body))
    if any(a.root is None and a.writes for a in accesses):
        return {v.name for v in source.variables if not v.is_const}
    known = [(a, a.root.name) for a in accesses if a.root is not None]
    return {name for a, name in known if a.reads} & {name for a, name in known if a.writes}


def _type_is_relied_on(source: Source) -> bool:
    """True if the source names the kernel for more than a launch: takes its address, declares it before or
    instantiates it."""
    name, kernel = entry_name(source.entry), source.kernel
    for n in find(source.root, "identifier"):
        if kernel.start_byte <= n.start_byte < kernel.end_byte or source.of(n) != name:
            continue
        used, around = n, n.parent
        while around is not None and around.type in ("template_function", "qualified_identifier"):
            used, around = around, around.parent
        launched = re.match(r"\s*(?:<<<|\()", source.between(used.end_byte, used.end_byte + 80))
        declared = around is not None and around.type == "function_declarator"
        if not launched or declared:
            return True
    return False


def _only_read(facts: Facts, v: Variable) -> bool:
    """True if every use is `p[i]` as a value, so that `const` cannot break an assignment."""
    if v.is_const:
        return False
    plain = {
        a.pointer.start_byte
        for a in facts.accesses(facts.source.body)
        if a.root == v and a.reads and not a.writes and a.node.type == "subscript_expression"
    }
    found = facts.names_of(v, facts.source.body)
    assigned = {
        n.start_byte
        for c in find(facts.source.body, "call_expression")
        if facts.may_assign(c)
        for n in find(c, "identifier")
    }
    return bool(found) and all(n.start_byte in plain - assigned for n in found)
