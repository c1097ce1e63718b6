"""Reads MessagePack: the types that metadata of code objects has. https://msgpack.org has the format."""

import struct
from typing import Any

_NUMBERS = {0xCA + n: f">{form}" for n, form in enumerate("fdBHIQbhiq")}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_SIZES = {**_LENGTHS, **_ARRAYS, **_MAPS}
_BINARY = range(0xC4, 0xC7)


def unpacked(data: bytes) -> Any:
    """The first value: None, a bool, a number, text, bytes, a list or a dict.

    Raises:
        ValueError: a type that is not read here, or text that is not UTF-8.
        struct.error, IndexError: the data ends too early.
        RecursionError: values nested too deep.
    """
    return _MessagePackReader(data).value()


class _MessagePackReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self) -> Any:
        head = self._data[self._at]
        self._at += 1
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head in _CONSTANTS:
            return _CONSTANTS[head]
        if head in _NUMBERS:
            return self._number(_NUMBERS[head])
        if head < 0x90 or head in _MAPS:
            return {self.value(): self.value() for _ in range(self._size(head, 0xF))}
        if head < 0xA0 or head in _ARRAYS:
            return [self.value() for _ in range(self._size(head, 0xF))]
        if head < 0xC0 or head in _LENGTHS:
            found = self._bytes(self._size(head, 0x1F))
            return found if head in _BINARY else found.decode()
        raise ValueError(f"MessagePack type {head:#x} is not read here")

    def _size(self, head: int, mask: int) -> int:
        """The size that bits of the head hold below 0xC0, or that follows the head."""
        return head & mask if head < 0xC0 else int(self._number(_SIZES[head]))

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise IndexError("the data ends too early")
        self._at += size
        return found

    def _number(self, form: str) -> Any:
        (found,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found
