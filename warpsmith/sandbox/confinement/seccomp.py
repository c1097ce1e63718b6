"""System calls that a confined child may not make. Landlock restricts files; this filter restricts the rest.

A kernel on a CPU device, and a NumPy function, run as native code of the child. The refused calls reach the
network, other processes, the machine, or out of the process group that the parent kills.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping, Sequence

from warpsmith.sandbox.confinement import system_calls
from warpsmith.sandbox.confinement.system_calls import MACHINES, Machine, Numbers

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_ABSENT = 0x00050000 | errno.ENOSYS

_CLONE_PARENT = 0x00008000
"""A process that is its maker's sibling. A fork server would have a child that it did not make."""
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_PR_SET_PDEATHSIG = 1
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
"""Commands of fcntl by which a file that becomes ready signals any process, with any signal."""
_PROCESS_KINDS: Mapping[str, int] = {"setpriority": 0, "ioprio_set": 1}
"""PRIO_PROCESS and IOPRIO_WHO_PROCESS."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16

_Step = tuple[int, int, int, int]

_ALLOWED: _Step = (_RETURN, 0, 0, _ALLOW)
_REFUSED: _Step = (_RETURN, 0, 0, _REFUSE)


def refuse_calls(forks: bool) -> bool:
    """Install the filter in this process and all its children; needs no-new-privileges.

    Args:
        forks: True if other processes may be started (compilers and linkers are programs).

    Returns:
        False if this architecture or kernel has no filter; nothing is refused then.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return False
    return _install(native_steps(machine, forks))


def refuse_calls_of_no_driver() -> bool:
    """Install a filter that refuses what the driver of a device never needs; needs no-new-privileges.

    A driver opens sockets, signals its own helpers and places its threads, so those calls stay allowed.

    Returns:
        False if this architecture or kernel has no filter; nothing is refused then.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return False
    refusals = _refusals(machine, system_calls.FOR_NO_DRIVER)
    return _install([*refusals, *_making_processes(machine, forks=True), _ALLOWED])


def _install(steps: Sequence[_Step]) -> bool:
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    text = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0) == 0)


def native_steps(machine: Machine, forks: bool) -> list[_Step]:
    """The filter's program for native code in this process: code, jumps and constant of each step."""
    refusals = _refusals(machine, system_calls.REFUSED)
    return [*refusals, *_judged(machine, forks), _ALLOWED]


def _refusals(machine: Machine, groups: Sequence[Numbers]) -> list[_Step]:
    """The beginning of a filter: the calls that are refused whatever their arguments."""
    steps = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    if machine.foreign is not None:
        steps += [(_AT_LEAST, 0, 1, machine.foreign), _REFUSED]
    for number in machine.numbers(*groups).values():
        steps += _for_call(number, [_REFUSED])
    return steps


def _judged(machine: Machine, forks: bool) -> list[_Step]:
    """Calls of native code that depend on their arguments."""
    pid, steps = os.getpid(), []
    judged = machine.numbers(system_calls.JUDGED)
    for number in machine.numbers(system_calls.FOR_OTHERS).values():
        steps += _for_call(number, [*_only(0, (0, pid)), _ALLOWED])
    for name, number in machine.numbers(system_calls.FOR_OTHERS_BY_KIND).items():
        own = [*_only(0, (_PROCESS_KINDS[name],)), *_only(1, (0, pid)), _ALLOWED]
        steps += _for_call(number, own)
    # abort() signals its own thread; no other thread or process may be signalled.
    steps += _for_call(judged["tgkill"], [*_only(0, (pid,)), _ALLOWED])
    steps += _for_call(judged["prctl"], [*_except(0, (_PR_SET_PDEATHSIG,)), _ALLOWED])
    steps += _for_call(judged["fcntl"], [*_except(1, (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX)), _ALLOWED])
    if not forks:
        for number in machine.numbers(system_calls.FORKS).values():
            steps += _for_call(number, [_REFUSED])
    return [*steps, *_making_processes(machine, forks)]


def _making_processes(machine: Machine, forks: bool) -> list[_Step]:
    judged = machine.numbers(system_calls.JUDGED)
    # Its flags are in memory, which a filter cannot see; glibc falls back to clone.
    steps = _for_call(judged["clone3"], [(_RETURN, 0, 0, _ABSENT)])
    body = [_argument(0), (_ANY_BIT, 0, 1, _CLONE_NAMESPACES | _CLONE_PARENT), _REFUSED]
    if not forks:
        body += [(_ANY_BIT, 1, 0, _CLONE_THREAD), _REFUSED]
    return [*steps, *_for_call(judged["clone"], [*body, _ALLOWED])]


def _for_call(number: int, body: list[_Step]) -> list[_Step]:
    """`body`, every way through which returns, for one call; other calls go on behind it."""
    return [(_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> _Step:
    """Load the low half of an argument: process ids, flags and commands have 32 bits."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _only(index: int, values: Sequence[int]) -> list[_Step]:
    """Refuse unless an argument has one of the values; go on if it has."""
    equal = [(_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
    return [_argument(index), *equal, _REFUSED]


def _except(index: int, values: Sequence[int]) -> list[_Step]:
    """Refuse if an argument has one of the values; go on if not."""
    unequal = [step for value in values for step in ((_EQUAL, 0, 1, value), _REFUSED)]
    return [_argument(index), *unequal]
