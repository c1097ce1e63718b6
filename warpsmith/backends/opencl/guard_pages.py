"""Host memory between pages without access rights, and a fault handler that notes who reached for them.

A fault gives the page its rights back, so that the launch goes on and one launch tells of every buffer. Runs
inside children only, on 64-bit Linux.
"""

import ctypes
import mmap
import os
import signal
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.memory import MOST_GUARD_BYTES, PagesAt

NONE, READ, WRITE = 0, 1, 2
"""Rights of a page, as `mprotect` counts them."""
SA_SIGINFO = 4
ADDRESS_AT = 16
"""Offset in bytes of `si_addr` in `siginfo_t`."""
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


@dataclass
class _Stretch:
    """Pages without some right, until they are reached for."""

    begin: int
    size_bytes: int
    reached: bool = False

    def allow(self, rights: int) -> None:
        if _process.mprotect(self.begin, self.size_bytes, rights):
            raise OSError(ctypes.get_errno(), "mprotect")


class GuardedPages:
    """Memory of one buffer, placed against a page without access rights.

    Args:
        align: alignment in bytes of its first byte, unless it ends at the page itself.
    """

    def __init__(self, size_bytes: int, at: PagesAt, align: int) -> None:
        body = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, body + 2 * MOST_GUARD_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + MOST_GUARD_BYTES
        self._sealed = _Stretch(begin, body)
        self._around = {
            "before the start": _Stretch(begin - MOST_GUARD_BYTES, MOST_GUARD_BYTES),
            "past the end": _Stretch(begin + body, MOST_GUARD_BYTES),
        }
        first = begin if at is PagesAt.BEFORE else begin + body - size_bytes
        if at is PagesAt.BEHIND:
            first = first // align * align
        whole = memoryview((ctypes.c_uint8 * size_bytes).from_address(first))
        self.bytes: NDArray[np.uint8] = np.frombuffer(whole, np.uint8)
        for one in self._around.values():
            one.allow(NONE)
            _watched[one.begin] = one
        _install()

    @property
    def reached(self) -> list[str]:
        """See `PageGuarded.reached`."""
        return [place for place, one in self._around.items() if one.reached]

    @property
    def was_written(self) -> bool:
        """See `PageGuarded.was_written`."""
        return self._sealed.reached

    def seal(self) -> None:
        """See `PageGuarded.seal`."""
        self._sealed.allow(READ)
        _watched[self._sealed.begin] = self._sealed

    def free(self) -> None:
        """Unmap the memory, which nobody may use any more."""
        for one in (self._sealed, *self._around.values()):
            _watched.pop(one.begin, None)
        self._map.close()


def _fault(number: int, info: int, _context: int) -> None:
    """Note what was reached for and allow it; a fault elsewhere ends the process when it happens again."""
    address = ctypes.c_uint64.from_address(info + ADDRESS_AT).value
    for one in tuple(_watched.values()):
        if one.begin <= address < one.begin + one.size_bytes:
            one.reached = True
            one.allow(READ | WRITE)
            return
    _process.signal(number, None)


def _install() -> None:
    action = _Action(ctypes.cast(_on_fault, ctypes.c_void_p).value, flags=SA_SIGINFO)
    if _process.sigaction(signal.SIGSEGV, ctypes.byref(action), None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


_watched: dict[int, _Stretch] = {}
_process = ctypes.CDLL(None, use_errno=True)
_process.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_process.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
_on_fault = _Handler(_fault)
