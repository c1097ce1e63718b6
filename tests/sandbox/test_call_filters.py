"""The programs of the filters, run as the kernel would, for machines that this one is not."""

import os
import struct

import pytest

from warpsmith.sandbox.confinement import seccomp, system_calls
from warpsmith.sandbox.confinement.system_calls import MACHINES, Machine

ALLOWED, REFUSED, ABSENT, KILLED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
ELSEWHERE = 2_000_000_000
X32 = 0x40000000
MUST_REFUSE = {
    *("socket", "setsid", "ptrace", "pidfd_open", "kill", "unshare", "fchmod", "shmget", "bpf"),
    *("perf_event_open", "add_key", "mount", "name_to_handle_at", "reboot", "setuid"),
}
"""One call of each group of those that are refused to native code."""
CLONE_VM, CLONE_THREAD, CLONE_NEWNET = 0x100, 0x10000, 0x40000000


def _answer(machine: Machine, forks: bool, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says to one call."""
    steps = seccomp.native_steps(machine, forks)
    values = [n & (1 << 64) - 1 for n in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", number, audit or machine.audit, 0, *values)
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("<I", data, constant)
            case 0x06:
                return constant
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: loaded == constant, 0x35: loaded >= constant, 0x45: bool(loaded & constant)}
                at += if_true if holds[code] else if_false
            case _:
                raise AssertionError(hex(code))


@pytest.mark.parametrize("name", sorted(MACHINES))
@pytest.mark.parametrize("forks", [True, False])
def test_a_call_is_answered_as_its_group_says(name: str, forks: bool) -> None:
    machine = MACHINES[name]
    refused = machine.numbers(*system_calls.REFUSED)
    assert set(refused) >= MUST_REFUSE
    assert {call for call, n in refused.items() if _answer(machine, forks, n) != REFUSED} == set()
    for number in machine.numbers(system_calls.FOR_OTHERS).values():
        assert [_answer(machine, forks, number, pid) for pid in (0, os.getpid())] == [ALLOWED] * 2
        assert [_answer(machine, forks, number, pid) for pid in (1, -1, ELSEWHERE)] == [REFUSED] * 3
    kinds = {"setpriority": 0, "ioprio_set": 1}
    for call, number in machine.numbers(system_calls.FOR_OTHERS_BY_KIND).items():
        assert _answer(machine, forks, number, kinds[call], 0) == ALLOWED
        assert _answer(machine, forks, number, kinds[call], os.getpid()) == ALLOWED
        assert _answer(machine, forks, number, kinds[call], os.getppid()) == REFUSED
        assert _answer(machine, forks, number, kinds[call] + 1, 0) == REFUSED
    for number in machine.numbers(system_calls.FORKS).values():
        assert _answer(machine, forks, number) == (ALLOWED if forks else REFUSED)


@pytest.mark.parametrize("name", sorted(MACHINES))
@pytest.mark.parametrize("forks", [True, False])
def test_some_calls_are_answered_by_their_arguments(name: str, forks: bool) -> None:
    machine = MACHINES[name]
    judged = machine.numbers(system_calls.JUDGED)
    assert _answer(machine, forks, judged["clone3"]) == ABSENT
    assert _answer(machine, forks, judged["clone"], CLONE_VM | CLONE_THREAD) == ALLOWED
    assert _answer(machine, forks, judged["clone"], 17) == (ALLOWED if forks else REFUSED)
    assert _answer(machine, forks, judged["clone"], CLONE_NEWNET | CLONE_THREAD) == REFUSED
    assert _answer(machine, forks, judged["tgkill"], os.getpid()) == ALLOWED
    assert _answer(machine, forks, judged["tgkill"], os.getppid()) == REFUSED
    assert [_answer(machine, forks, judged["prctl"], n) for n in (1, 1 << 32 | 1, 15)] == [
        *(REFUSED, REFUSED, ALLOWED)
    ]
    commands = (1, 3, 8, 10, 15)
    assert [_answer(machine, forks, judged["fcntl"], 0, n) for n in commands] == [
        *(ALLOWED, ALLOWED, REFUSED, REFUSED, REFUSED)
    ]


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_other_calls_pass_and_other_machines_do_not(name: str) -> None:
    machine = MACHINES[name]
    named = machine.numbers(
        *system_calls.REFUSED,
        *(system_calls.FOR_OTHERS, system_calls.FOR_OTHERS_BY_KIND, system_calls.FORKS, system_calls.JUDGED),
    )
    others = set(range(480)) - set(named.values())
    assert {n for n in others if _answer(machine, True, n) != ALLOWED} == set()
    assert _answer(machine, True, 0, audit=0x40000003) == KILLED
    # On x86_64 this bit asks for the x32 ABI, whose numbers are in no table; elsewhere it means nothing.
    assert _answer(machine, True, X32 + 1) == (REFUSED if name == "x86_64" else ALLOWED)


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_no_number_is_in_the_table_twice(name: str) -> None:
    groups = [*system_calls.REFUSED, system_calls.FOR_OTHERS, system_calls.FOR_OTHERS_BY_KIND]
    groups += [system_calls.FORKS, system_calls.JUDGED]
    numbers = [n for group in groups for n in MACHINES[name].numbers(group).values()]
    assert len(numbers) == len(set(numbers))
