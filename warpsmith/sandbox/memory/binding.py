"""Binds the arguments of a launch to memory, and keeps its arrays of addresses. Runs in the device child."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from warpsmith.backends.base import Array, Bound, Device, LocalSlot, Memory, Packed, Pointer
from warpsmith.domain.jobs.by_value_plan import Address, PointerPlan, TablePlan, ValuePlan
from warpsmith.domain.jobs.plan import LocalPlan, ScalarPlan, WorkloadPlan
from warpsmith.sandbox.memory.canaries import violations
from warpsmith.sandbox.memory.packing import packed, table
from warpsmith.sandbox.memory.rotation import Pair
from warpsmith.verify.dtypes import numpy_dtype


@dataclass
class _Table:
    """An array of addresses between two guard zones."""

    plan: TablePlan
    memory: Memory
    canaries: tuple[bytes, bytes]
    contents: bytes = b""

    @property
    def guard(self) -> int:
        return len(self.canaries[0])


class AddressTables:
    """The arrays of addresses of a workload: of each pair of buffer sets its own, guarded and read-only."""

    def __init__(self, device: Device, plans: Sequence[TablePlan], guard_bytes: int) -> None:
        self._device = device
        self._plans = plans
        self._guard_bytes = guard_bytes
        self._of: dict[Pair, list[_Table]] = {}

    def bind(self, pair: Pair, buffers: Mapping[str, Pointer]) -> dict[str, Pointer]:
        """The arrays of a pair by name, written on first use.

        Args:
            buffers: the buffers of the pair by name.
        """
        if pair not in self._of:
            self._of[pair] = [self._allocate(plan) for plan in self._plans]
        pointers: dict[str, Pointer] = {t.plan.name: (t.memory, t.guard) for t in self._of[pair]}
        known = {**buffers, **pointers}
        for one in self._of[pair]:
            contents = table(one.plan.addresses, lambda a: _address(known, a))
            one.contents = contents.tobytes()
            one.memory.write(contents, one.guard)
        return pointers

    def guard_violations(self, pair: Pair) -> list[str]:
        """Arrays of a pair whose guard zones changed."""
        tables = self._of.get(pair, ())
        found = (violations(t.plan.name, t.memory, t.canaries, len(t.contents)) for t in tables)
        return [name for names in found for name in names]

    def changed(self, pair: Pair) -> list[str]:
        """Arrays of a pair that hold other addresses than were written."""
        return [
            one.plan.name
            for one in self._of.get(pair, ())
            if one.memory.read(one.guard, len(one.contents)) != one.contents
        ]

    def free(self) -> None:
        """Free all memory."""
        for tables in self._of.values():
            for one in tables:
                one.memory.free()
        self._of = {}

    def _allocate(self, plan: TablePlan) -> _Table:
        guard = self._guard_bytes
        canaries = (secrets.token_bytes(guard), secrets.token_bytes(guard))
        one = _Table(plan, self._device.allocate(plan.size_bytes + 2 * guard), canaries)
        if guard:
            one.memory.write(_bytes(canaries[0]), 0)
            one.memory.write(_bytes(canaries[1]), guard + plan.size_bytes)
        return one


def bind(plan: WorkloadPlan, pointers: Mapping[str, Pointer]) -> list[Bound]:
    """The arguments of a launch, in the kernel's order.

    Args:
        pointers: buffers and arrays of addresses by name.
    """
    bound: list[Bound] = []
    local = count()
    for argument in plan.arguments:
        if isinstance(argument, LocalPlan):
            bound.append(LocalSlot(next(local)))
        elif isinstance(argument, ScalarPlan):
            bound.append(numpy_dtype(argument.dtype).type(argument.value))
        elif isinstance(argument, ValuePlan):
            bound.append(Packed(packed(argument, lambda a: _address(pointers, a)), argument.align))
        elif isinstance(argument, PointerPlan):
            bound.append(_pointer(pointers, argument.address))
        else:
            bound.append(pointers[argument.name])
    return bound


def _pointer(pointers: Mapping[str, Pointer], address: Address) -> Pointer | None:
    if address.to is None:
        return None
    memory, offset = pointers[address.to]
    return memory, offset + address.offset_bytes


def _address(pointers: Mapping[str, Pointer], address: Address) -> int:
    pointer = _pointer(pointers, address)
    return 0 if pointer is None else pointer[0].address + pointer[1]


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)
