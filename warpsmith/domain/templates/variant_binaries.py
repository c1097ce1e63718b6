"""Several compiled variants of one kernel in one piece, each with how it is launched.

A just-in-time compiler makes a binary for each class of launches; a program that is loaded once has them all.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

MAGIC = b"warpsmith variants 1\n"


@dataclass(frozen=True)
class Variant:
    """A compiled variant of a kernel: its binary, and facts that its launch needs beyond the grid."""

    key: str
    """`Specialisation.key`."""
    entry: str
    """Symbol of the kernel in the binary."""
    binary: bytes
    threads: int
    """Threads of a block."""
    shared_bytes: int
    """Dynamic shared memory of a block, in bytes."""
    blocks: int
    """Blocks of a cluster along x, for each of which the grid counts once."""
    passes: tuple[int, ...]
    """Places, among the job's arguments, of those that the launch passes."""
    trailing: int = 0
    """Pointers that the kernel takes behind its arguments: to scratch, and to a profiler's memory."""
    scratch_bytes: int = 0
    """Device memory for each block of the grid that the kernel uses as scratch, in bytes."""


def join(variants: Iterable[Variant]) -> bytes:
    """All of them as one binary."""
    every = tuple(variants)
    heads = [{**asdict(v), "binary": len(v.binary)} for v in every]
    return MAGIC + json.dumps(heads).encode() + b"\n" + b"".join(v.binary for v in every)


def split(data: bytes) -> tuple[Variant, ...]:
    """The inverse of `join`.

    Raises:
        ValueError: the data are something else, or cut short.
    """
    if not is_joined(data):
        raise ValueError("no binary with variants")
    head, _, rest = data[len(MAGIC) :].partition(b"\n")
    found: list[Variant] = []
    try:
        for fields in json.loads(head):
            size = int(fields["binary"])
            if not 0 < size <= len(rest):
                raise ValueError("a variant is cut short")
            found.append(_variant(fields, rest[:size]))
            rest = rest[size:]
    except (LookupError, TypeError) as exc:
        raise ValueError("a variant without its fields") from exc
    return tuple(found)


def is_joined(data: bytes) -> bool:
    """True if `join` made it."""
    return data.startswith(MAGIC)


def distinct(groups: Sequence[bytes]) -> bytes:
    """The variants of several joined binaries, each key once.

    Raises:
        ValueError: one of them is something else.
    """
    return join({v.key: v for data in groups for v in split(data)}.values())


def _variant(fields: dict[str, object], binary: bytes) -> Variant:
    whole = {
        n: int(str(fields[n])) for n in ("threads", "shared_bytes", "blocks", "trailing", "scratch_bytes")
    }
    passes = fields["passes"]
    assert isinstance(passes, list)
    places = tuple(int(p) for p in passes)
    return Variant(key=str(fields["key"]), entry=str(fields["entry"]), binary=binary, passes=places, **whole)
