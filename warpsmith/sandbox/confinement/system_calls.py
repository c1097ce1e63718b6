"""Numbers of the system calls that a child is refused, by name and machine, and why they are.

The numbers are those of Linux: `arch/x86/entry/syscalls/syscall_64.tbl`, and for aarch64
`include/uapi/asm-generic/unistd.h`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Numbers = Mapping[str, tuple[int | None, int | None]]
"""Number on x86_64 and on aarch64 by name; None where the machine has no such call."""

NETWORK: Numbers = {"socket": (41, 198), "io_uring_setup": (425, 425)}
"""Calls that reach the network. An io_uring can open sockets."""

LEAVING: Numbers = {"setsid": (112, 157), "setpgid": (109, 154)}
"""Calls that leave the process group, which the parent kills as a whole."""

TRACING: Numbers = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
}
"""Calls that look into other processes, or change them."""

PROCESS_FILES: Numbers = {"pidfd_open": (434, 434), "pidfd_getfd": (438, 438)}
"""Calls that make a file of a process, and take files of it."""

SIGNALS: Numbers = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
"""Calls that signal other processes."""

NAMESPACES: Numbers = {"unshare": (272, 97), "setns": (308, 268)}

FILE_OWNERS: Numbers = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Calls that change the mode, owner, times or attributes of a file. Landlock lets them pass everywhere."""

SHARED_OBJECTS: Numbers = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
}
"""Calls for objects of System V, and queues of POSIX. They outlive a process and are found without a file."""

KERNEL: Numbers = {"bpf": (321, 280), "userfaultfd": (323, 282), "memfd_secret": (447, 447)}
"""Calls that widen what can be attacked in the kernel. Secret memory is locked, and nobody can look at it."""

OBSERVING: Numbers = {"perf_event_open": (298, 241), "personality": (135, 92)}
"""Calls that count what the kernel and others do, or switch off the random layout of memory."""

KEYS: Numbers = {"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)}

MOUNTS: Numbers = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
}
"""Calls that change what is mounted, and where."""

FILE_HANDLES: Numbers = {
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "mknod": (133, None),
    "mknodat": (259, 33),
}
"""Calls that reach or watch files other than by their path, and that make device files."""

MACHINE: Numbers = {
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "iopl": (172, None),
    "ioperm": (173, None),
    "acct": (163, 89),
    "vhangup": (153, 58),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
"""Calls that act on the whole machine, which only root may make."""

IDENTITY: Numbers = {
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    "setgroups": (116, 159),
    "capset": (126, 91),
}
"""Calls by which root becomes another user."""

FOR_OTHERS: Numbers = {
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
}
"""Calls whose first argument names a process: allowed for the own one (0 or its id)."""

FOR_OTHERS_BY_KIND: Numbers = {"setpriority": (141, 140), "ioprio_set": (251, 30)}
"""Calls whose first argument says of what kind the second is (process, group or user): allowed for the own
process."""

FORKS: Numbers = {"fork": (57, None), "vfork": (58, None)}

JUDGED: Numbers = {
    "tgkill": (234, 131),
    "clone": (56, 220),
    "clone3": (435, 435),
    "prctl": (157, 167),
    "fcntl": (72, 25),
}
"""Calls that are refused with some arguments."""

FOR_NO_DRIVER = (TRACING, NAMESPACES, KERNEL, KEYS, MOUNTS, MACHINE)
"""Groups of calls that the driver of a device never makes; refused whatever their arguments."""

REFUSED = (
    *FOR_NO_DRIVER,
    *(NETWORK, LEAVING, SIGNALS, PROCESS_FILES, FILE_OWNERS, SHARED_OBJECTS, OBSERVING, FILE_HANDLES),
    IDENTITY,
)
"""Groups of calls that are refused to native code, whatever their arguments."""


@dataclass(frozen=True)
class Machine:
    """A processor architecture, as a filter sees it."""

    audit: int
    """Constant by which a filter recognises it."""
    column: int
    """Its place in `Numbers`."""
    foreign: int | None = None
    """First number that belongs to another ABI."""

    def numbers(self, *groups: Numbers) -> dict[str, int]:
        """Numbers by name of the calls that this machine has."""
        found = {name: both[self.column] for group in groups for name, both in group.items()}
        return {name: number for name, number in found.items() if number is not None}


MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(0xC000003E, 0, foreign=0x40000000),
    "aarch64": Machine(0xC00000B7, 1),
}
"""Machines by the name that `platform.machine()` gives."""
