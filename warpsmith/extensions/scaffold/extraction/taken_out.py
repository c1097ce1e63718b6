"""A kernel taken out of its file: the entry and what it reaches, without host code and host headers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from warpsmith.extensions.scaffold.extraction.framework_types import framework_lines
from warpsmith.extensions.scaffold.reading.file_declarations import (
    Declaration,
    declarations,
    without_template,
)
from warpsmith.source.kernels.kernel_definitions import Dialect
from warpsmith.source.lexing.tokens import blank
from warpsmith.source.tree.included_headers import INCLUDE

_WORD = re.compile(r"[A-Za-z_]\w*")
_DEVICE_HEADERS = re.compile(
    r"(?:cuda_fp(?:4|6|8|16)|cuda_bf16|mma|cooperative_groups|curand\w*|math_constants|cuComplex|vector_types"
    r"|cuda_pipeline\w*|cuda_awbarrier\w*|stdint|float|limits|stdio|assert|math)\.h"
    r"|(?:cooperative_groups|cub|cuda|thrust|nv|hip|hipcub)/[\w/.]+"
    r"|c?(?:stdint|float|limits|cmath|stdio|assert)|type_traits|utility|limits"
)
"""Headers of a toolkit and of the language that device code uses."""
_NAMESPACES = ("nvcuda", "cooperative_groups", "cub", "cuda", "std", "wmma")
"""Namespaces of those headers."""
_OF_DEVICE = re.compile(r"\b(?:__device__|__global__|__constant__|__shared__|__managed__|constexpr)\b")
_TYPE_OR_VALUE = re.compile(
    r"\s*(?:static\s+|inline\s+)*(?:const|enum|struct|class|union|using|typedef|namespace|concept|static_assert)\b"
)
"""Declarations that host and device code share."""
_NOT_NAMES = frozenset(
    ("__attribute__", "__launch_bounds__", "__declspec", "__align__", "alignas", "decltype")
)
"""Words that a bracket follows and that are no function."""
_INSTANTIATION = re.compile(r"\s*(?:[A-Z]\w*\s*\([^()]*\)\s*)*(?:extern\s+)?template\s+(?!<)")
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+OPENCL[^\n]*", re.M)
_MOST_CHARACTERS = 4_000_000
"""Limit on the text of all files that are searched."""
_MOST_DECLARATIONS = 2_000


@dataclass(frozen=True)
class File:
    """A file that may hold what a kernel reaches."""

    name: str
    text: str


@dataclass(frozen=True)
class Taken:
    """A kernel's own source."""

    text: str
    functions_left_out: int
    """Number of functions and variables of the kernel's file that it does not reach."""
    headers_left_out: tuple[str, ...]
    """Names of headers that were neither found nor are a toolkit's."""


@dataclass
class Pool:
    """Declarations of several files; of two with the same name, that of the later file is nearer.

    Args:
        files: headers first, the kernel's own file last.
    """

    files: Sequence[File]
    dialect: Dialect
    _by_name: dict[str, list[int]] = field(default_factory=dict)

    @cached_property
    def items(self) -> list[tuple[int, Declaration]]:
        """Number of the file, and declaration, in the order in which a compiler reads them."""
        found: list[tuple[int, Declaration]] = []
        size = 0
        for number, file in enumerate(self.files):
            size += len(file.text)
            if size <= _MOST_CHARACTERS:
                found += ((number, d) for d in declarations(file.text))
        for at, (_, declared) in enumerate(found):
            for name in set(_names(declared)):
                self._by_name.setdefault(name, []).append(at)
        return found

    def declaring(self, name: str) -> list[int]:
        """Indices of the declarations of a name, all in the nearest file that has one."""
        items = self.items
        places = [at for at in self._by_name.get(name, ()) if self._is_of_device(items[at][1])]
        nearest = max((items[at][0] for at in places), default=0)
        return [at for at in places if items[at][0] == nearest]

    def _is_of_device(self, d: Declaration) -> bool:
        """True if a kernel can use the declaration; in CUDA a function or variable says so."""
        if _INSTANTIATION.match(d.header):
            return False
        if self.dialect is Dialect.OPENCL or d.is_macro:
            return True
        bare = without_template(d.header)
        is_function = (
            "(" in bare and "{" in d.text and re.match(r"\s*(?:struct|class|union|enum)\b", bare) is None
        )
        if _OF_DEVICE.search(d.header) or (_TYPE_OR_VALUE.match(bare) and not is_function):
            return True
        words = [w for w in _WORD.findall(d.header) if w.isupper()]
        bodies = (self.items[at][1].text for w in words for at in self._by_name.get(w, ()))
        return any("__device__" in body or "__global__" in body for body in bodies)


def taken_out(pool: Pool, entry: str, also: Iterable[str] = ()) -> Taken | None:
    """The source of one kernel; None if no file of the pool defines it.

    Args:
        entry: the kernel's plain name.
        also: further names that the source must declare, such as those of template arguments.
    """
    items = pool.items
    begin = [at for at in pool.declaring(entry) if _defines(items[at][1], entry)]
    if not begin:
        return None
    wanted = _reached(pool, [*begin, *(at for name in also for at in pool.declaring(name))])
    own = len(pool.files) - 1
    text = "\n".join(items[at][1].written() for at in sorted(wanted))
    spaces = "".join(f"using namespace {s};\n" for s in _used_namespaces(pool, wanted))
    headers, missing = _headers(pool.files)
    head = _head(pool, text, wanted, headers)
    left = sum(
        number == own and "(" in d.header and not d.is_macro
        for at, (number, d) in enumerate(items)
        if at not in wanted
    )
    return Taken("\n".join((*head, *((spaces,) if spaces else ()), text)) + "\n", left, tuple(missing))


def _head(pool: Pool, text: str, wanted: Iterable[int], headers: Iterable[str]) -> list[str]:
    """Pragmas, includes and lines for a framework's types, which go before the declarations."""
    head = [*dict.fromkeys(p.strip() for f in pool.files for p in _PRAGMA.findall(f.text))]
    if pool.dialect is not Dialect.OPENCL:
        head += [f"#include <{name}>" for name in headers]
        known = {name for at in wanted for name in _names(pool.items[at][1])}
        head += framework_lines(text, known, pool.dialect)
    return head


def _reached(pool: Pool, begin: Iterable[int]) -> set[int]:
    wanted: set[int] = set()
    waiting = list(begin)
    seen: set[str] = set()
    while waiting and len(wanted) < _MOST_DECLARATIONS:
        at = waiting.pop()
        if at in wanted:
            continue
        wanted.add(at)
        d = pool.items[at][1]
        for word in dict.fromkeys(_WORD.findall(" ".join((blank(d.text), *d.conditions)))):
            if word not in seen:
                seen.add(word)
                waiting += pool.declaring(word)
    return wanted


def _names(d: Declaration) -> Iterator[str]:
    """Names that a declaration makes known."""
    if d.is_macro:
        yield from _macro_name(d)
        return
    bare = blank(d.text)
    behind = bare.rpartition("}")[2]
    kind = re.match(r"\s*(?:typedef\b.*?)?\b(struct|class|union|enum|typedef)\b", bare)
    if kind is not None and kind.group(1) == "typedef" and "}" not in bare:
        pointed = re.findall(r"\(\s*\*+\s*(\w+)\s*\)", bare)
        plain = re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?=[,;])", re.sub(r"<[^;]*>|\([^;]*\)", " ", bare))
        yield from pointed[:1] or plain
    elif kind is not None:
        yield from _WORD.findall(behind)
    if re.match(r"\s*(?:typedef\s+)?enum\b", bare):
        yield from _WORD.findall(bare.partition("{")[2])
    words = dict.fromkeys(w for w in _WORD.findall(d.header) if w not in _NOT_NAMES)
    if kind is None or kind.group(1) != "typedef":
        yield from (word for word in words if d.declares(word))


def _macro_name(d: Declaration) -> Iterator[str]:
    """Name of a macro; none for that of an include guard, which would hide what it guards."""
    found = re.match(r"#\s*define\s+(\w+)(.*)", d.header)
    if found and (found.group(2).strip() or f"!defined({found.group(1)})" not in "".join(d.conditions)):
        yield found.group(1)


def _defines(d: Declaration, entry: str) -> bool:
    return "{" in d.text and "(" in d.header and d.declares(entry)


def _used_namespaces(pool: Pool, wanted: Iterable[int]) -> Iterator[str]:
    """Namespaces that the kernel's files open, of those that are declared here or in a toolkit."""
    spaces = {s for at in wanted for s in pool.items[at][1].namespaces}
    for file in pool.files:
        for name in re.findall(r"\busing\s+namespace\s+([\w:]+)\s*;", blank(file.text)):
            if name.split("::")[0] in spaces or name.split("::")[0] in _NAMESPACES:
                yield name


def _headers(files: Sequence[File]) -> tuple[list[str], list[str]]:
    """Headers of the toolkit that the files include, and those that are left out."""
    known = {file.name.rpartition("/")[2] for file in files}
    kept: dict[str, None] = {}
    missing: dict[str, None] = {}
    for file in files:
        for _, name in INCLUDE.findall(file.text):
            if _DEVICE_HEADERS.fullmatch(name):
                kept[name] = None
            elif name.rpartition("/")[2] not in known:
                missing[name] = None
    return list(kept), list(missing)


def without_header(text: str, name: str) -> str:
    """A source without its include of a header."""
    return re.sub(rf"^#include <{re.escape(name)}>\n", "", text, flags=re.M)
