"""MessagePack as its specification writes it, and code objects that are none."""

import struct

import pytest

from warpsmith.backends.binaries.amd_code_object import read_code_object
from warpsmith.backends.binaries.messagepack import unpacked


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xc0", None),
        (b"\xc2", False),
        (b"\xc3", True),
        (b"\xcc\xff", 255),
        (b"\xcd\x01\x00", 256),
        (b"\xce\x00\x01\x00\x00", 65536),
        (b"\xcf" + bytes(7) + b"\x01", 1),
        (b"\xd0\x80", -128),
        (b"\xd3" + b"\xff" * 8, -1),
        (b"\xcb" + struct.pack(">d", 1.5), 1.5),
        (b"\xa3.ab", ".ab"),
        (b"\xd9\x02ab", "ab"),
        (b"\xda\x00\x02ab", "ab"),
        (b"\xc4\x02ab", b"ab"),
        (b"\x92\x01\xa1x", [1, "x"]),
        (b"\xdc\x00\x01\x05", [5]),
        (b"\x82\xa1a\x01\xa1b\x91\x02", {"a": 1, "b": [2]}),
        (b"\xde\x00\x01\xa1a\x01", {"a": 1}),
    ],
)
def test_values(data: bytes, value: object) -> None:
    assert unpacked(data) == value


@pytest.mark.parametrize(
    "data", [b"", b"\xa3ab", b"\xcd\x01", b"\x92\x01", b"\xc1", b"\xd4\x01\x00", b"\xa1\xff"]
)
def test_what_is_none_is_an_error(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError, struct.error)):
        unpacked(data)


@pytest.mark.parametrize("binary", [b"", b"\x7fELF", b"x" * 64, b"\x7fELF\x02\x01" + bytes(58)])
def test_what_is_no_code_object_is_an_error(binary: bytes) -> None:
    with pytest.raises(ValueError, match=r"malformed|not a"):
        read_code_object(binary)
