"""Variables of a loaded binary: read together where they lie together, filled as host code would."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warpsmith.backends.addressed_memory import AddressSpace
from warpsmith.backends.base import Array, DeviceFault, LaunchRefused

PADDING_BYTES = 256
"""Variables that lie no further apart are read together: sections have no larger gaps, and what lies between
two sections may not be readable."""


@dataclass
class _ReadSpan:
    """Variables that lie beside each other, which one copy reads."""

    address: int
    size_bytes: int = 0
    variables: list[tuple[str, int, int]] = field(default_factory=list)
    """Name, first byte and size of each."""


def _span(base: int, variables: Sequence[tuple[str, int, int]]) -> _ReadSpan:
    """A span of its own for some variables of another one, which begins at `base`."""
    first = variables[0][1]
    end = max(at + size for _, at, size in variables)
    return _ReadSpan(base + first, end - first, [(name, at - first, size) for name, at, size in variables])


def _spans(places: Mapping[str, tuple[int, int]]) -> list[_ReadSpan]:
    """The variables by address; what lies between two of a span is padding."""
    spans: list[_ReadSpan] = []
    for address, size, name in sorted((at, size, name) for name, (at, size) in places.items()):
        if not spans or address > spans[-1].address + spans[-1].size_bytes + PADDING_BYTES:
            spans.append(_ReadSpan(address))
        span = spans[-1]
        at = address - span.address
        span.variables.append((name, at, size))
        span.size_bytes = max(span.size_bytes, at + size)
    return spans


class ProgramVariables(ABC):
    """The part of `backends.base.Program` that is about its variables."""

    def __init__(self, space: AddressSpace, variables: Sequence[str]) -> None:
        """Read the variables for the first time.

        Args:
            variables: symbols of those that a kernel could use to remember earlier launches.

        Raises:
            DeviceFault: one cannot be read.
        """
        self._space = space
        self._symbols: dict[str, str] = {}
        places = {name: self._place(name) for name in variables}
        near = _spans({name: place for name, place in places.items() if place is not None})
        self._spans = [span for one in near for span in self._readable(one)]
        self._variables = self._all_contents()

    @abstractmethod
    def _place(self, name: str) -> tuple[int, int] | None:
        """Address and size in bytes of a variable; None: the driver finds none of internal linkage."""

    @abstractmethod
    def _variable(self, name: str) -> str:
        """The symbol of a variable of the source, in whatever namespace; empty: none, or several."""

    def changed_globals(self) -> list[str]:
        """See `Program.changed_globals`."""
        now = self._all_contents()
        return [name for name, was in self._variables.items() if now[name] != was]

    def write_symbol(self, name: str, data: Array) -> None:
        """See `Program.write_symbol`."""
        symbol, host = self._symbol(name), np.ascontiguousarray(data).view(np.uint8)
        found = self._place(symbol)
        if found is None:
            raise LaunchRefused(
                f"symbol {name}: the driver finds no such variable in the binary; declare it without static "
                "and outside of nameless namespaces"
            )
        address, size = found
        if size != host.nbytes:
            raise LaunchRefused(f"symbol {name}: has {host.nbytes} bytes in the job and {size} in the kernel")
        self._space.write(address, host)
        if symbol in self._variables:
            self._variables[symbol] = host.tobytes()

    def read_symbol(self, name: str) -> bytes:
        """See `Program.read_symbol`."""
        return self._contents(self._symbol(name)) or b""

    def _symbol(self, name: str) -> str:
        """The name in the binary of a variable of the source."""
        if name not in self._symbols:
            self._symbols[name] = self._variable(name)
        return self._symbols[name]

    def _contents(self, name: str) -> bytes | None:
        found = self._place(name)
        return None if found is None else self._read(*found)

    def _all_contents(self) -> dict[str, bytes]:
        """Contents by variable, of those that the driver finds. A toolkit's headers may bring hundreds."""
        found: dict[str, bytes] = {}
        for span in self._spans:
            data = self._read(span.address, span.size_bytes)
            found |= {name: data[at : at + size] for name, at, size in span.variables}
        return found

    def _readable(self, span: _ReadSpan) -> Iterator[_ReadSpan]:
        """The span, or parts of it: variables of several allocations of the driver cannot be read at once."""
        if len(span.variables) == 1:
            yield span
            return
        try:
            self._read(span.address, span.size_bytes)
        except DeviceFault:
            middle = len(span.variables) // 2
            for part in (span.variables[:middle], span.variables[middle:]):
                yield from self._readable(_span(span.address, part))
        else:
            yield span

    def _read(self, address: int, size_bytes: int) -> bytes:
        host = np.empty(size_bytes, np.uint8)
        self._space.read(host, address)
        return host.tobytes()
