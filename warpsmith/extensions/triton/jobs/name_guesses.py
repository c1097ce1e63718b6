"""Guesses from the names of parameters: types, tile sizes, strides, usual numbers."""

import re
from collections.abc import Iterable

_TILE = re.compile(r"(?:BLOCK|TILE|GROUP)(?:_|[A-Z]|$)|.*_(?:BLOCK|TILE)(?:_|$)")
_STRIDE = re.compile(r"(?i)(?:^|_)strides?(?:_|$|\d)|stride$")
_FLOAT = re.compile(
    r"(?i)(?:^|_)(?:eps|epsilon|scale|alpha|beta|gamma|lr|momentum|temperature|softcap|dropout_?p|p|smoothing|"
    r"weight_decay|rate|factor|limit|casting_offset|offset)$|(?:^|_)(?:scale|softcap|eps|smoothing)(?:_|$)"
)
_NUMBERS = (("eps", "1e-05"), ("scale", "0.125"), ("lr", "0.001"), ("dropout", "0.1"), ("smoothing", "0.1"))
_INDEX = re.compile(
    r"(?i)(?:^|_)(?:ids?|idx|index|indices|indptr|offsets?|labels?|targets?|lens?|seqlens?|tables?|mapping|count|counts)"
    r"(?:_|$)|(?:idx|ids|indices|seqlens|offsets|lens|slots)(?:_|$)|^cu_|(?:^|_)y_ptr$(?!)"
)
_FULL = re.compile(
    r"(?i)(?:^|_)(?:lse|mean|rstd|inv_?rms|rrms|var|std|loss|scales?|max|sum|acc|delta|norm|m|l)(?:_|$)"
)
_MASK = re.compile(r"(?i)(?:^|_)mask(?:_|$)")
_SUFFIX = re.compile(r"(?i)_?(?:ptrs?|pointer)$")
_SWITCH = re.compile(
    r"(?i)^(?:has|use|is|do|with|store|even|output|apply|causal|need|save|enable|reverse|head_first)(?:_|$)"
)
_SIZE = re.compile(
    r"(?i)(?:^|_)(?:dim|dims|d|size|len|cols|rows|heads?|hidden|ctx|n|m|k|h|t|v|c|s|hv|hq|features?)(?:_|$)|dim$|size$|len$"
)
_SMALL = (("head_dim", 64), ("heads", 8), ("batch", 4), ("dim", 64))
_LETTERS = {"b": 4, "z": 4, "h": 8, "d": 64, "hq": 8, "hv": 8, "g": 8}


def is_tile(name: str) -> bool:
    """True if a name says that it is the size of a tile or of a group of tiles."""
    return _TILE.match(name) is not None


def is_stride(name: str) -> bool:
    """True if a name says that it is a stride."""
    return _STRIDE.search(name) is not None


def is_float(name: str) -> bool:
    """True if a name is that of a scalar which is seldom whole."""
    return _FLOAT.search(name) is not None


def is_pointer(name: str) -> bool:
    """True if a name ends as those of pointers do."""
    return _SUFFIX.search(name) is not None


def is_switch(name: str) -> bool:
    """True if a name is that of something which is true or false."""
    return _SWITCH.search(name) is not None


def is_size(name: str) -> bool:
    """True if a name is that of an extent."""
    return _SIZE.search(name) is not None


def number_of(name: str) -> str:
    """A usual value of a scalar that is not whole."""
    return next((number for word, number in _NUMBERS if word in name.lower()), "1.0")


def dtype_of(name: str) -> str:
    """The element type that a pointer's name suggests."""
    stem = stem_of(name)
    if _INDEX.search(stem):
        return "int32"
    if _MASK.search(stem):
        return "int8"
    return "float32" if _FULL.search(stem) else "float16"


def stem_of(name: str) -> str:
    """A pointer's name without the ending that says that it is one."""
    return _SUFFIX.sub("", name) or name


def size_of(name: str, count: int) -> int:
    """A placeholder size of a dimension.

    Args:
        count: the number of dimensions of the job.
    """
    low = name.lower()
    if low in _LETTERS and count > 2:
        return _LETTERS[low]
    if (found := next((size for word, size in _SMALL if word in low), 0)) and count > 2:
        return found
    return 1024 if count <= 2 else 512 if count == 3 else 128


def stride_axes(pointer: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Stride parameters of a pointer in their order, each with the word that names its axis."""
    stem = re.escape(stem_of(pointer).lower())
    forms = (
        rf"strides?_{stem}_?(\w*)",
        rf"{stem}_strides?_?(\w*)",
        rf"{stem}_(\w+)_stride",
        rf"strides?_{stem}(\w)",
    )
    found = []
    for name in names:
        matched = next((m for f in forms if (m := re.fullmatch(f, name.lower()))), None)
        if matched:
            found.append((name, matched.group(1)))
    return found


def around(default: int, least: int = 16) -> list[int]:
    """Powers of two around a number, which is one of them."""
    near = {default // 4, default // 2, default, default * 2, default * 4}
    return sorted(n for n in near if n == default or least <= n <= 4096)
