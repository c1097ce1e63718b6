"""Files near a kernel's own, searched for what it names and does not define."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from warpsmith.extensions.scaffold.extraction.taken_out import File, Pool
from warpsmith.extensions.scaffold.reading.file_declarations import Declaration
from warpsmith.job_files.kernel_sources import HEADER_ENDINGS, SOURCE_ENDINGS
from warpsmith.source.declarations.named_constants import integer_value
from warpsmith.source.kernels.host_strings import only_literals
from warpsmith.source.kernels.kernel_definitions import Dialect
from warpsmith.source.lexing.tokens import blank
from warpsmith.system.source_text import read_source_text

_LEVELS = 6
"""Limit on the folders that are searched upwards."""
_MOST_FILES = 4_000
_MOST_BYTES = 1 << 20
_HOST = (".c", ".cc", ".cpp", ".cxx", ".py", ".txt", ".cmake", ".mk")
_CPP = re.compile(
    r"\b(?:constexpr|auto|class|template|std|namespace|using|extern|static|u?int\d+_t)\b|::|\blong\s+long\b"
)
_NUMBERS = {
    "long long": "long",
    "unsigned long long": "ulong",
    "int64_t": "long",
    "uint64_t": "ulong",
    "int32_t": "int",
    "uint32_t": "uint",
    "int16_t": "short",
    "uint16_t": "ushort",
    "int8_t": "char",
    "uint8_t": "uchar",
}
"""Types of OpenCL C by what C++ calls them."""
_DEEPEST = 3
"""Limit on the names that lead from a value to a number."""
_MOST_NAMES = 4
"""Limit on the names in one value."""
_CONSTANT = re.compile(r"k?[A-Z]\w*|\w+_[A-Z]\w*")
"""Names that are written as constants are."""
_LONGEST = 80
"""Limit on the characters of a value."""


def near(source: Path) -> tuple[Path, ...]:
    """Sources and headers below the kernel's folder, then below those above it in its repository."""
    return _near(source.resolve().parent)


@lru_cache(maxsize=4)
def _near(folder: Path) -> tuple[Path, ...]:
    found: dict[Path, None] = {}
    for searched in _searched(folder):
        for path in _below(searched):
            found.setdefault(path)
            if len(found) >= _MOST_FILES:
                return tuple(found)
    return tuple(found)


def _searched(folder: Path) -> list[Path]:
    """A folder and those above it up to the root of its repository; the folder alone outside of one."""
    upward = [folder, *folder.parents]
    root = next((at for at, f in enumerate(upward) if (f / ".git").exists()), 0)
    return upward[: min(root + 1, _LEVELS)]


def _below(folder: Path) -> Iterator[Path]:
    """Files of a folder, then those of the folders in it; hidden and unreadable folders are left out."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield from (path for name in sorted(names) if _may_hold(path := Path(parent, name)))


def _may_hold(path: Path) -> bool:
    known = path.suffix in (*HEADER_ENDINGS, *SOURCE_ENDINGS, *_HOST)
    return known and path.suffix != ".py" and path.is_file() and path.stat().st_size <= _MOST_BYTES


@lru_cache(maxsize=2_000)
def _text(path: Path) -> str:
    text = read_source_text(path)
    whole = only_literals(text)
    return text if whole is None else whole.text


def declaring(source: Path, name: str, dialect: Dialect) -> File | None:
    """The nearest file of device code that declares a name."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    for path in near(source):
        if path.suffix not in _HOST and path != source.resolve() and word.search(_text(path)):
            file = File(path.name, _text(path))
            pool = Pool((file,), dialect)
            found = [pool.items[at][1] for at in pool.declaring(name)]
            if found and all(_fits(d, dialect) for d in found):
                return file
    return None


def _fits(d: Declaration, dialect: Dialect) -> bool:
    """False for a declaration of C++ that OpenCL C does not read."""
    return dialect is not Dialect.OPENCL or not (
        (d.namespaces and not d.is_macro) or _CPP.search(blank(d.text))
    )


def number_type(source: Path, name: str) -> tuple[str, str] | None:
    """The type of OpenCL C that a file gives a name which is an alias in C++, and the file's name."""
    own, kinds = re.escape(name), "|".join(map(re.escape, _NUMBERS))
    alias = re.compile(
        rf"\btypedef\s+(?:std::)?({kinds})\s+{own}\s*;|\busing\s+{own}\s*=\s*(?:std::)?({kinds})\s*;"
    )
    for path in near(source):
        if name in (text := _text(path)) and (found := alias.search(text)):
            return _NUMBERS[found.group(1) or found.group(2)], path.name
    return None


def header(source: Path, name: str) -> File | None:
    """The nearest file that an include of this name may mean."""
    ending = "/" + name.rpartition("/")[2]
    return next((File(name, _text(p)) for p in near(source) if str(p).endswith(ending)), None)


@lru_cache(maxsize=4_000)
def value_of(source: Path, name: str, depth: int = 0) -> tuple[str, str] | None:
    """The number that the files near a kernel give a name most often, and the first file that does."""
    own = re.escape(name)
    patterns = (
        re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{own}[ \t]+([^\n/]+)", re.M),
        re.compile(rf"-D ?{own}=[\"']?(-?[\w.]+)"),
        re.compile(rf"(?<![.>])\b{own}\s*=\s*([^;,\n]+)[;,]"),
    )
    values: Counter[str] = Counter()
    places: dict[str, str] = {}
    for path in near(source):
        if name in (text := _text(path)):
            for found in (m.group(1) for p in patterns for m in p.finditer(text)):
                number = _number(source, name, found.strip(), depth)
                if number:
                    values[number] += 1
                    places.setdefault(number, path.name)
    best = max(values, key=lambda v: values[v], default="")
    return (best, places[best]) if best else None


def _number(source: Path, name: str, text: str, depth: int) -> str:
    """A number that a text is, with the names in it replaced by their own; empty if it is none."""
    if re.fullmatch(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?[fFuUlL]*", text):
        return text
    words = set(re.findall(r"[A-Za-z_]\w*", text)) - {name}
    if depth >= _DEEPEST or len(text) > _LONGEST or not 0 < len(words) <= _MOST_NAMES:
        return ""
    if not all(_CONSTANT.fullmatch(word) for word in words):
        return ""  # a variable has the value of another place
    known: dict[str, int] = {}
    for word in words:
        found = value_of(source, word, depth + 1)
        if found is None or not found[0].isdecimal():
            return ""
        known[word] = int(found[0])
    value = integer_value(text, known)
    return "" if value is None else str(value)
