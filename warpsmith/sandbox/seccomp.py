"""System calls that a confined child may not make. Landlock restricts files; this filter restricts the rest.

A kernel on a CPU device, and a NumPy function, run as native code of the child. The refused calls reach the
network, other processes, or out of the process group that the parent kills.
"""

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_ABSENT = 0x00050000 | errno.ENOSYS
"""Return value of clone3, whose flags a filter cannot see; glibc then falls back to clone."""
_CLONE_THREAD = 0x00010000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENT = 0, 4, 16

_Step = tuple[int, int, int, int]


@dataclass(frozen=True)
class _Machine:
    """System call numbers of one processor architecture."""

    audit: int
    refused: tuple[int, ...]
    """socket, io_uring_setup (which can open sockets), setsid, setpgid, ptrace, process_vm_writev, kill,
    tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal, pidfd_getfd, bpf, perf_event_open,
    userfaultfd, unshare, setns, mount, add_key, request_key, keyctl, open_by_handle_at."""
    tgkill: int
    clone: int
    forks: tuple[int, ...]
    foreign: int | None = None
    """First number that belongs to another ABI."""


_CLONE3 = 435
_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        refused=(
            *(41, 425, 112, 109, 101, 311, 62, 200, 129, 297, 424, 438),
            *(321, 298, 323, 272, 308, 165, 248, 249, 250, 304),
        ),
        tgkill=234,
        clone=56,
        forks=(57, 58),
        foreign=0x40000000,
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        refused=(
            *(198, 425, 157, 154, 117, 271, 129, 130, 138, 240, 424, 438),
            *(280, 241, 282, 97, 268, 40, 217, 218, 219, 265),
        ),
        tgkill=131,
        clone=220,
        forks=(),
    ),
}


def refuse_calls(forks: bool) -> bool:
    """Install the filter in this process and all its children; needs no-new-privileges.

    Args:
        forks: True if other processes may be started (compilers and linkers are programs).

    Returns:
        False if this architecture has no filter; nothing is refused then.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    program = b"".join(struct.pack("=HBBI", *step) for step in _steps(machine, forks))
    steps = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0) == 0)


def _steps(machine: _Machine, forks: bool) -> list[_Step]:
    steps = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    if machine.foreign is not None:
        steps += [(_AT_LEAST, 0, 1, machine.foreign), (_RETURN, 0, 0, _REFUSE)]
    for number in machine.refused if forks else (*machine.refused, *machine.forks):
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    # abort() signals its own thread; no other thread or process may be signalled.
    steps += [(_EQUAL, 0, 4, machine.tgkill), (_LOAD, 0, 0, _ARGUMENT), (_EQUAL, 0, 1, os.getpid())]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    if not forks:
        steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ABSENT)]
        steps += [(_EQUAL, 0, 4, machine.clone), (_LOAD, 0, 0, _ARGUMENT), (_ANY_BIT, 0, 1, _CLONE_THREAD)]
        steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    return [*steps, (_RETURN, 0, 0, _ALLOW)]
