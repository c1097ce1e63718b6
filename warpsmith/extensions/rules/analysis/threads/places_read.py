"""Places of a thread that a kernel reads, also in the macros and headers that it uses."""

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.calls.callees import known
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.source.tree.syntax_tree import ancestors, find, plain

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?((?:[^\n]*\\\n)*[^\n]*)", re.M)
_UNCLEAR = re.compile(
    r"""\b(?:thread_rank|block_rank|grid_rank|block_index|thread_index|group_index|group_dim|dim_blocks
    |dim_threads|num_blocks|num_threads|this_grid|grid_group|get_enqueued_\w+|get_global_offset|\w*linear_id
    |hip(?:Block|Thread|Grid)\w+)\b
    |%(?:n?ctaid|n?tid|gridid)\b
    |\b(?:threadIdx|blockIdx|blockDim|gridDim)\b(?!\s*\.\s*[xyz]\b)
    |\bget_(?:global|local|group)_(?:id|size)\s*\((?!\s*[012]\s*\))
    |\bget_num_groups\s*\((?!\s*[012]\s*\))""",
    re.X,
)


@dataclass(frozen=True)
class PlacesRead:
    """Reads of a thread's places in the code that a kernel reaches."""

    text: str
    """The kernel, its callees, and the bodies of the macros that they name."""
    unclear: str
    """A reading whose axis is unclear, or a callee that is not known; empty if there is none."""

    def along(self, axis: str) -> bool:
        """True if the place or the number of threads or blocks along an axis is read."""
        n = AXES.index(axis)
        cuda = rf"\b(?:threadIdx|blockIdx|blockDim|gridDim)\s*\.\s*{axis}\b"
        return re.search(rf"{cuda}|\bget_\w+\s*\(\s*{n}\s*\)", self.text) is not None

    def size_of_grid(self, axis: str) -> bool:
        """True if the number of blocks, or of threads of the whole grid, is read along an axis."""
        n = AXES.index(axis)
        opencl = rf"\bget_(?:num_groups|global_size)\s*\(\s*{n}\s*\)"
        return re.search(rf"\bgridDim\s*\.\s*{axis}\b|{opencl}", self.text) is not None


def places_read(facts: Facts) -> PlacesRead:
    """The reads of a kernel, its callees, and the macros that they name."""
    text = _reached(facts)
    found = _UNCLEAR.search(text)
    unclear = "" if found is None else f"`{found[0].strip()}` is read, whose axis is unclear"
    return PlacesRead(text, unclear or _unknown(facts))


def _reached(facts: Facts) -> str:
    """The text of the kernel and of all that its words name: functions, macros, functions of headers."""
    source = facts.source
    texts = [_COMMENTS.sub(" ", plain(f)) for f in source.reachable]
    macros: dict[str, list[str]] = {}
    for text in (source.text, *source.library):
        for name, body in _MACRO.findall(text):
            macros.setdefault(name, []).append(body)
    seen: set[str] = set()
    for text in texts:
        for word in set(re.findall(r"[A-Za-z_]\w*", text)) - seen:
            seen.add(word)
            texts += macros.get(word, [])
            texts += [_COMMENTS.sub(" ", plain(f)) for f in source.library_definitions(word)]
    return "\n".join(texts)


def _unknown(facts: Facts) -> str:
    for function in facts.source.reachable:
        for call in find(function, "call_expression"):
            if any(n.type == "attribute_specifier" for n in ancestors(call)):
                continue
            name = facts.source.callee(call)
            if not _is_known(facts, name, call):
                return f"it calls {name}, whose definition is not in the source"
    return ""


def _is_known(facts: Facts, name: str, call: Node) -> bool:
    source = facts.source
    if known(name) is not None or source.definitions(name) or source.library_definitions(name):
        return True
    texts = (source.text, *source.library)
    macro = rf"(?m)^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\("
    return facts.is_type(name, call) or any(re.search(macro, t) for t in texts)
