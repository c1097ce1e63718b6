"""Limits, privileges and files that a child gives up before it touches anything of a user.

The child itself calls this, after its imports and before its first request. Landlock (Linux 5.13 and later)
needs no privileges; if the kernel lacks it, `confine` returns False and the caller decides. System calls that
reach the network or other processes are refused by a filter (see `seccomp`).
"""

import contextlib
import ctypes
import os
import resource
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath

from warpsmith.sandbox.confinement.seccomp import refuse_calls, refuse_calls_of_no_driver

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_REMOVE_DIR = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE_DIR = 1 << 7
_MAKE_REG = 1 << 8
_MAKE_SYM = 1 << 12
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NET_TCP = 0b11
_SCOPE_ALL = 0b11


class SyscallFilter(Enum):
    """Filters of system calls, from the strictest to none."""

    NATIVE = "native"
    """Refuses all calls with which native code of a stranger could do harm."""
    DRIVER = "driver"
    """Refuses calls that no driver makes. For CUDA: its driver talks to services over sockets, and its
    kernels are not native code."""
    ANY = "any"
    """Refuses no call."""


@dataclass(frozen=True)
class Confinement:
    """Rights that a child keeps."""

    read: tuple[Path, ...]
    """Folders and files it may read and execute."""
    write: tuple[Path, ...]
    """Folders it may write."""
    list_root: bool = False
    """Folders may be listed anywhere (names, not contents): hwloc in PoCL opens `/` first."""
    devices: tuple[Path, ...] = ()
    """Device files and folders it may read, write and control."""
    memory_bytes: int | None = None
    """Limit on the address space; None for CUDA, which reserves far more than it uses."""
    data_bytes: int | None = None
    """Limit on private writable memory; it excludes CUDA's reservations and device memory."""
    cpu_s: int | None = None
    file_bytes: int = 1 << 30
    calls: SyscallFilter = SyscallFilter.NATIVE
    """Filter of the child's system calls."""
    forks: bool = True
    """True if the child may start other processes."""


def confine(limits: Confinement) -> bool:
    """Apply the limits to this process and its children; True if files are restricted as well."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_NOFILE, 1024)
    if limits.memory_bytes is not None:
        _limit(resource.RLIMIT_AS, limits.memory_bytes)
    if limits.data_bytes is not None:
        _limit(resource.RLIMIT_DATA, limits.data_bytes)
    if limits.cpu_s is not None:
        _limit(resource.RLIMIT_CPU, limits.cpu_s)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    restricted = _landlock(limits)
    if limits.calls is SyscallFilter.NATIVE:
        refuse_calls(limits.forks)
    elif limits.calls is SyscallFilter.DRIVER:
        refuse_calls_of_no_driver()
    return restricted


def memory_limit(most_bytes: int) -> int:
    """`most_bytes`, or three quarters of the memory of this machine or container if that is less."""
    return min(most_bytes, machine_memory() // 4 * 3)


def machine_memory(root: Path = Path("/")) -> int:
    """Bytes of memory that this process may use: those of the machine, or the limit of its container or
    service.

    Args:
        root: folder that contains `proc` and `sys`.
    """
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for number, controllers, path in (line.split(":", 2) for line in groups if line.count(":") > 1):
        old = "memory" in controllers.split(",")
        if not old and number != "0":
            continue
        top = root / ("sys/fs/cgroup/memory" if old else "sys/fs/cgroup")
        name = "memory.limit_in_bytes" if old else "memory.max"
        # Inside a container the path is the host's, and the container's own limit is at the top.
        for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
            with contextlib.suppress(OSError, ValueError):
                found.append(int((top / str(folder).lstrip("/") / name).read_text()))
    return min(found)


def landlock_abi() -> int:
    """Landlock version of the running kernel; 0 if it has none."""
    abi = _libc().syscall(_SYS_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return max(0, int(abi))


def _landlock(limits: Confinement) -> bool:
    abi = landlock_abi()
    if abi < 1:
        return False
    handled = _ALL_BY_ABI.get(abi, _ALL_BY_ABI[5])
    attributes = struct.pack("=QQQ", handled, _NET_TCP if abi >= 4 else 0, _SCOPE_ALL if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    libc = _libc()
    ruleset = libc.syscall(_SYS_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        return False
    try:
        _allow(ruleset, limits.read, _READ & handled)
        if limits.list_root:
            _allow(ruleset, (Path("/"),), _READ_DIR & handled)
        _allow(ruleset, limits.write, (_WRITE | _REFER | _TRUNCATE) & handled)
        device_rights = _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV | _TRUNCATE
        _allow(ruleset, limits.devices, device_rights & handled)
        return bool(libc.syscall(_SYS_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[Path], rights: int) -> None:
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            mask = rights if path.is_dir() else rights & _FILE_ONLY
            rule = struct.pack("=Qi", mask, fd)
            _libc().syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(fd)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _prctl(option: int, value: int) -> None:
    _libc().prctl(option, value, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
