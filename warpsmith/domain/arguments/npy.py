"""The header of a `.npy` file, read without NumPy."""

import ast
from dataclasses import dataclass
from math import prod

_MAGIC = b"\x93NUMPY"
_KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool", "V": "void"}


@dataclass(frozen=True)
class NpyFile:
    """The elements of a file: their kind, how many there are, and their bytes in C order."""

    kind: str
    """`float`, `int`, `uint`, `bool`, or `void` for types that NumPy lacks."""
    itemsize: int
    elements: int
    raw: bytes


def parse_npy(content: bytes) -> NpyFile:
    """The elements of a `.npy` file.

    Raises:
        ValueError: it is none, or its elements are not plain little-endian numbers in C order.
    """
    if content[:6] != _MAGIC or len(content) < 12:
        raise ValueError("is no .npy file")
    wide = content[6] > 1
    begin = 12 if wide else 10
    length = int.from_bytes(content[8:begin], "little")
    try:
        header = ast.literal_eval(content[begin : begin + length].decode("latin1").strip())
        described, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
        order, kind, itemsize = described[0], described[1], int(described[2:])
        elements = prod(int(extent) for extent in shape)
    except (ValueError, SyntaxError, KeyError, TypeError, IndexError, MemoryError, RecursionError) as exc:
        raise ValueError("its header cannot be read; its elements must be plain numbers") from exc
    if order not in "<|" or kind not in _KINDS:
        raise ValueError(f"its elements are {described!r}; they must be little-endian numbers")
    if fortran and len(shape) > 1:
        raise ValueError("is in Fortran order; save it in C order")
    raw = content[begin + length :]
    if itemsize < 1 or len(raw) != elements * itemsize:
        raise ValueError(f"has {len(raw)} bytes of elements, not {elements * itemsize}")
    return NpyFile(_KINDS[kind], itemsize, elements, raw)
