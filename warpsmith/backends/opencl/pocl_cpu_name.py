"""Sets a CPU name in PoCL if its LLVM is older than the CPU.

Such an LLVM calls the CPU "generic". PoCL passes that name to clang, clang refuses it, and no kernel builds
(pocl/pocl issue 1049). PoCL 3 has no setting for the name. The name is a string that the device object points
to; it is overwritten with the name of an older CPU that has the same instructions.
"""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

UNKNOWN = b"generic\0"
_OBJECT_BYTES = 4096
_WORD = 8
_KNOWN: tuple[tuple[bytes, frozenset[str]], ...] = (
    (b"skx", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
    (b"haswell", frozenset({"avx2", "fma", "bmi2", "f16c"})),
)
"""LLVM's CPU names with the features that each needs. They follow PoCL's choice of its built-in library,
which is compiled for the same instructions and must be called with the same vector registers."""
_BASELINE = b"x86-64"


@cache
def cpu_name() -> bytes:
    """The newest CPU name that LLVM 14 knows and whose features this CPU has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return _BASELINE
    flags = next((frozenset(line.split()) for line in lines if line.startswith("flags")), frozenset())
    return next((name for name, needed in _KNOWN if needed <= flags), _BASELINE)


def name_unknown_cpu(device: Any) -> bool:
    """Give a PyOpenCL device of PoCL a CPU name that clang knows.

    Returns:
        True if the name was unknown and has been replaced.
    """
    words = _read(device.int_ptr, _OBJECT_BYTES)
    places = {
        address
        for at in range(0, len(words) - _WORD + 1, _WORD)
        if (address := int.from_bytes(words[at : at + _WORD], "little"))
        and _read(address, len(UNKNOWN)) == UNKNOWN
    }
    if len(places) != 1:
        return False
    name = cpu_name() + b"\0"
    ctypes.memmove(places.pop(), name, len(name))
    return True


class _IoVec(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def _read(address: int, size: int) -> bytes:
    """Bytes of this process's own memory; short or empty if nothing is mapped there."""
    buffer = ctypes.create_string_buffer(size)
    here, there = ctypes.byref(_IoVec(ctypes.addressof(buffer), size)), ctypes.byref(_IoVec(address, size))
    one, flags = ctypes.c_ulong(1), ctypes.c_ulong(0)
    count = _libc().process_vm_readv(os.getpid(), here, one, there, one, flags)
    return buffer.raw[: max(0, count)]


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    return libc
