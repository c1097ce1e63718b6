"""Buffers of one workload on a device: guard zones, poison, restoring, rotation. Runs in the device child."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.backends.base import Array, Bound, Device, Memory, PageGuarded, Pointer, Program
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import (
    DEFAULT_CACHE_BYTES,
    DISTINCT_VARIANTS,
    MAX_SETS,
    GuardZones,
    cold_sets,
    redrawn_cheaply,
)
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.sandbox.memory.binding import AddressTables, bind
from warpsmith.sandbox.memory.canaries import canary_pair, violations
from warpsmith.sandbox.memory.fresh_inputs import FreshInputs
from warpsmith.sandbox.memory.rotation import Pair, rotation
from warpsmith.sandbox.memory.scratch import Scratch
from warpsmith.sandbox.memory.spoiling import JOINED_BYTES, fill_with_poison, spoil
from warpsmith.sandbox.memory.symbols import Symbols
from warpsmith.sandbox.transport.frames import Received
from warpsmith.verify.dtypes import numpy_dtype
from warpsmith.verify.inputs import TILE_ELEMENTS, Tiles, draw_buffer, tiles_of

SPOT_BYTES = 64 << 10
USUAL_GUARDS = GuardZones()
FIRST = Pair(0, 0)
"""Buffer sets of checked launches."""


@dataclass
class _Slot:
    """A buffer of a set: guard, contents, guard. An image has no guards."""

    plan: BufferPlan
    memory: Memory
    canaries: tuple[bytes, bytes]

    @property
    def guard(self) -> int:
        return len(self.canaries[0])

    @property
    def end(self) -> int:
        return self.guard + self.plan.size_bytes


class WorkloadBuffers:
    """All buffer sets of one workload.

    Set 0 serves checked launches. Cold timing rotates over all sets, hot timing over few.

    Args:
        guards: of every buffer; images have none.
    """

    def __init__(self, device: Device, plan: WorkloadPlan, guards: GuardZones = USUAL_GUARDS) -> None:
        self.plan = plan
        self._guards = guards
        self._device = device
        self._inputs: dict[tuple[str, Family, int], Array] = {}
        self._pools: dict[tuple[str, Family, int], Tiles | None] = {}
        self._saved: dict[str, Memory] = {}
        self._walked: dict[CacheState, int] = {}
        self._bound: dict[Pair, list[Bound]] = {}
        self._fresh: FreshInputs | None = None
        self._refreshed: set[int] = set()
        self._scratch = Scratch(device, (), (), guards.size_bytes)
        self._tables = AddressTables(device, plan.tables, guards.size_bytes)
        self._sets: list[list[_Slot]] = [self._allocate(0)]
        self._pristine: list[dict[str, Memory]] = [self._keep_pristine(0)]

    @property
    def in_place(self) -> bool:
        """True if launches change data that later launches read, or could read unseen.

        What does not count of an output is compared with nothing. Answers that a launch keeps there for later
        ones are overwritten with the rest before any set is launched again.
        """
        return any(b.role is Role.INOUT or b.in_part for b in self.plan.buffers)

    def free(self) -> None:
        """Free all memory."""
        for slots in self._sets:
            for slot in slots:
                slot.memory.free()
        for kept in self._pristine[:DISTINCT_VARIANTS]:
            for memory in kept.values():
                memory.free()
        for memory in self._saved.values():
            memory.free()
        if self._fresh is not None:
            self._fresh.free()
        self._tables.free()
        self._scratch.free()
        self._sets, self._pristine, self._saved, self._bound = [], [], {}, {}

    def bound(self, pair: Pair, scratch: Scratch) -> list[Bound]:
        """Kernel arguments that point into the sets of `pair` and into `scratch`, which `scratch_of` gave."""
        assert scratch is self._scratch, "its memory was freed"
        if pair not in self._bound:
            buffers: dict[str, Pointer] = {s.plan.name: (s.memory, s.guard) for s in self._slots(pair)}
            self._bound[pair] = bind(self.plan, buffers | self._tables.bind(pair, buffers) | scratch.pointers)
        return self._bound[pair]

    def scratch_of(self, size: LaunchSize) -> Scratch:
        """The memory between the launches of a sequence, the same for all buffer sets.

        That of a launch with other sizes is freed.
        """
        if self._scratch.sizes_bytes != size.scratch_bytes:
            self._scratch.free()
            self._bound.clear()
            self._scratch = Scratch(
                self._device, self.plan.scratch, size.scratch_bytes, self._guards.size_bytes
            )
        return self._scratch

    def symbols_of(self, program: Program) -> Symbols:
        """The variables of a program that this workload fills."""
        return Symbols(program, self.plan.symbols, self._input)

    def rotation(self, cache: CacheState, apart: bool = True) -> tuple[Pair, ...]:
        """Pairs of sets for timed launches, in order, continuing after the last timing. Memory is allocated
        on first use.

        Args:
            apart: see `rotation.rotation`; not needed for in-place kernels, whose sets are restored.
        """
        apart = apart and not self.in_place
        count = self._set_count(cache, apart)
        while len(self._sets) < count:
            index = len(self._sets)
            self._sets.append(self._allocate(index))
            self._pristine.append(self._keep_pristine(index))
        pairs = rotation(count, apart)
        start = self._walked.get(cache, 0) % len(pairs)
        return pairs[start:] + pairs[:start]

    def walk_on(self, cache: CacheState, launches: int) -> None:
        """Advance the rotation by this number of launches."""
        self._walked[cache] = self._walked.get(cache, 0) + launches

    def restore(self, indices: Iterable[int] = (0,)) -> None:
        """Restore the data that in-place launches changed in these sets, in this order."""
        for index in indices:
            pristine = self._pristine[index]
            for slot in self._sets[index]:
                if slot.plan.role is Role.INOUT:
                    size = slot.plan.size_bytes
                    slot.memory.copy_from(pristine[slot.plan.name], size, slot.guard)

    @property
    def redrawn_cheaply(self) -> bool:
        """True if the inputs of a set may be rewritten between two samples."""
        return redrawn_cheaply(self.plan)

    def redraw(self, index: int, family: Family, variant: int) -> None:
        """Give set `index` other input values, until `undo_redraw`."""
        for slot in self._sets[index]:
            if slot.plan.role is Role.OUTPUT:
                continue
            if slot.plan.role is Role.INPUT:
                if slot.plan.name not in self._saved:
                    self._saved[slot.plan.name] = self._reserve(slot.plan)
                self._saved[slot.plan.name].copy_from(slot.memory, slot.plan.size_bytes, slot.guard)
            self._draw_into(slot, variant, family)

    def undo_redraw(self, index: int) -> None:
        """Restore the read-only inputs of set `index`; in-place ones are restored by `restore`."""
        for slot in self._sets[index]:
            if slot.plan.role is Role.INPUT:
                slot.memory.copy_from(self._saved[slot.plan.name], slot.plan.size_bytes, slot.guard)

    def refresh(self, indices: Iterable[int]) -> None:
        """Give these sets inputs that no launch had before, until `settle`. Those of files stay."""
        if self._fresh is None:
            self._fresh = FreshInputs(self._device, self.plan)
        for index in indices:
            turn = secrets.randbits(62)
            for slot in self._sets[index]:
                if slot.plan.role is not Role.OUTPUT:
                    self._fresh.write(slot.plan, slot.memory, slot.guard, turn)
            self._refreshed.add(index)

    def settle(self) -> None:
        """Give the sets that `refresh` changed their own inputs again."""
        for index in sorted(self._refreshed):
            for slot in self._sets[index]:
                if slot.plan.role is not Role.OUTPUT:
                    self._fill(slot, index)
        self._refreshed.clear()

    def spoil(self, index: int, ranges: Mapping[str, Sequence[tuple[int, int]]] | None) -> None:
        """Overwrite some outputs of set `index`, or of the given ranges of them; see `spoiling`.

        The rest keeps the result of the last launch. A kernel that checks there whether its work is already
        done, and a kernel that does nothing, both leave the overwritten part unchanged.
        """
        for slot in self._sets[index]:
            if slot.plan.role is not Role.OUTPUT:
                continue
            spans = [(0, slot.plan.elements)] if ranges is None else ranges[slot.plan.name]
            spoil(slot.memory, slot.guard, slot.plan.size_bytes, slot.plan.dtype.size_bytes, spans)

    def poison(self, indices: Iterable[int] = (0,)) -> dict[str, bytes]:
        """Fill the outputs of these sets with bytes that no kernel can have left there.

        Returns:
            The four repeated bytes that fill each output of the last set, by name.
        """
        filled: dict[str, bytes] = {}
        for index in indices:
            outputs = [s for s in self._sets[index] if s.plan.role is Role.OUTPUT]
            filled = {s.plan.name: fill_with_poison(s.memory, s.guard, s.plan.size_bytes) for s in outputs}
        return filled

    def guard_violations(self, pair: Pair = FIRST) -> list[str]:
        """Buffers of a launch whose guard zones changed."""
        slots = self._slots(pair)
        found = (violations(s.plan.name, s.memory, s.canaries, s.plan.size_bytes) for s in slots)
        return [name for names in found for name in names] + self._tables.guard_violations(pair)

    def changed_inputs(
        self, whole: bool, pair: Pair = FIRST, family: Family = Family.DECLARED, variant: int = 0
    ) -> list[str]:
        """Read-only inputs and addresses of a launch that changed; found by spot checks unless `whole`."""
        inputs = (slot for slot in self._sets[pair.inputs] if slot.plan.role is Role.INPUT)
        changed = self._tables.changed(pair)
        return changed + [s.plan.name for s in inputs if not self._holds(s, whole, variant, family)]

    def _holds(self, slot: _Slot, whole: bool, variant: int, family: Family) -> bool:
        """True if a read-only input still holds its drawn values, all of them or those of spot checks."""
        if isinstance(slot.memory, PageGuarded) and slot.memory.was_written:
            return False
        size = slot.plan.dtype.size_bytes
        tiles = self._tiles(slot.plan, variant, family)
        data = self._input(slot.plan, variant, family) if tiles is None else None
        for start, stop in _spots(slot.plan.elements, whole, size):
            seen = memoryview(slot.memory.read(slot.guard + start * size, (stop - start) * size))
            values: Iterable[Array]
            if data is not None:
                values = (data[start:stop],)
            elif tiles is not None and whole:
                values = tiles.pieces()
            else:
                values = (tiles.span(start, stop),) if tiles is not None else ()
            at = 0
            for part in values:
                wanted = np.ascontiguousarray(part).view(np.uint8)
                if not np.array_equal(np.frombuffer(seen[at : at + wanted.size], np.uint8), wanted):
                    return False
                at += wanted.size
        return True

    def read(
        self, name: str, ranges: Sequence[tuple[int, int]] | None, pair: Pair = FIRST
    ) -> bytes | memoryview:
        """Contents of a mutated buffer after a launch: all of it, or element ranges joined in order."""
        slot = next(s for s in self._slots(pair) if s.plan.name == name)
        size = slot.plan.dtype.size_bytes
        if ranges is None:
            return slot.memory.read(slot.guard, slot.plan.size_bytes)
        if slot.plan.size_bytes <= JOINED_BYTES and len(ranges) > 1:
            data = slot.memory.read(slot.guard, slot.plan.size_bytes)
            return b"".join(data[a * size : b * size] for a, b in ranges)
        return b"".join(slot.memory.read(slot.guard + a * size, (b - a) * size) for a, b in ranges)

    def _slots(self, pair: Pair) -> list[_Slot]:
        """Outputs of the pair's output set, and everything else of its input set."""
        mixed = zip(self._sets[pair.inputs], self._sets[pair.outputs], strict=True)
        return [b if b.plan.role is Role.OUTPUT else a for a, b in mixed]

    def _set_count(self, cache: CacheState, apart: bool) -> int:
        """Number of sets: even, or 1."""
        count = self._most_sets(cache, apart)
        return count if count == 1 else count // 2 * 2

    def _most_sets(self, cache: CacheState, apart: bool) -> int:
        set_bytes = max(1, sum(b.size_bytes for b in self.plan.allocated))
        cache_bytes = self._device.info.limits.l2_bytes or DEFAULT_CACHE_BYTES
        if cache is CacheState.HOT:
            if self.in_place:
                return max(1, min(MAX_SETS, cache_bytes // 4 // set_bytes))
            return 2 if apart and 2 * set_bytes <= cache_bytes else 1
        return cold_sets(set_bytes, self._device.info.limits, self._device.info.shares_host)

    def _allocate(self, index: int) -> list[_Slot]:
        slots = []
        for buffer in self.plan.allocated:
            guards = self._guards if buffer.image is None else GuardZones(0)
            slot = _Slot(buffer, self._reserve(buffer), canary_pair(buffer, guards))
            if slot.guard:
                slot.memory.write(np.frombuffer(slot.canaries[0], np.uint8), 0)
                slot.memory.write(np.frombuffer(slot.canaries[1], np.uint8), slot.end)
            slots.append(slot)
            if buffer.role is not Role.OUTPUT:
                self._fill(slot, index)
            if buffer.role is Role.INPUT and isinstance(slot.memory, PageGuarded):
                slot.memory.seal()
        return slots

    def _fill(self, slot: _Slot, index: int) -> None:
        """Give an input of a set its values: drawn, or those of the set with the same values."""
        if index < DISTINCT_VARIANTS:
            self._draw_into(slot, index)
            return
        name, first = slot.plan.name, index % DISTINCT_VARIANTS
        if slot.plan.role is Role.INOUT:
            origin = self._pristine[first][name]
        else:
            origin = next(s.memory for s in self._sets[first] if s.plan.name == name)
        slot.memory.copy_from(origin, slot.plan.size_bytes, slot.guard)

    def _reserve(self, buffer: BufferPlan) -> Memory:
        """Memory for a buffer with its guard zones, or for an image."""
        if buffer.image is not None:
            return self._device.allocate_image(buffer)
        return self._device.allocate(buffer.size_bytes + 2 * self._guards.size_bytes)

    def _keep_pristine(self, index: int) -> dict[str, Memory]:
        kept: dict[str, Memory] = {}
        for slot in self._sets[index]:
            if slot.plan.role is not Role.INOUT:
                continue
            if index >= DISTINCT_VARIANTS:
                kept[slot.plan.name] = self._pristine[index % DISTINCT_VARIANTS][slot.plan.name]
                continue
            memory = self._reserve(slot.plan)
            memory.copy_from(slot.memory, slot.plan.size_bytes, slot.guard)
            kept[slot.plan.name] = memory
        return kept

    def _draw_into(self, slot: _Slot, variant: int, family: Family = Family.DECLARED) -> None:
        """Fill a buffer with its values. Of large ones the pool is sent, and the device copies its tiles."""
        tiles = self._tiles(slot.plan, variant, family)
        if tiles is None:
            slot.memory.write(self._input(slot.plan, variant, family), slot.guard)
            return
        size = tiles.pool.itemsize
        pool = self._device.allocate(tiles.pool.nbytes)
        try:
            pool.write(tiles.pool)
            begins = (tiles.starts * size).tolist()
            slot.memory.gather(pool, begins, TILE_ELEMENTS * size, slice(slot.guard, slot.end))
        finally:
            pool.free()

    def _tiles(self, buffer: BufferPlan, variant: int, family: Family = Family.DECLARED) -> Tiles | None:
        """The tiles of a buffer that the device draws; None if the host does."""
        if self._device.info.shares_host or buffer.image is not None:
            return None
        family = self.plan.family if family is Family.DECLARED else family
        key = (buffer.name, family, variant)
        if key not in self._pools:
            self._pools[key] = tiles_of(buffer, self.plan.seed, self.plan.variant + variant, family)
        return self._pools[key]

    def _input(self, buffer: BufferPlan, variant: int, family: Family = Family.DECLARED) -> Array:
        """Values of a buffer; cached if they will be needed again."""
        family = self.plan.family if family is Family.DECLARED else family
        key = (buffer.name, family, variant)
        if key in self._inputs:
            return self._inputs[key]
        drawn = draw_buffer(buffer, self.plan.seed, self.plan.variant + variant, family)
        if variant == 0 or variant >= DISTINCT_VARIANTS:
            self._inputs[key] = drawn
        return drawn


def _spots(elements: int, whole: bool, size: int) -> list[tuple[int, int]]:
    """Ranges of elements that are looked at, of a buffer with elements of so many bytes."""
    spot = SPOT_BYTES // size
    if whole or elements <= 3 * spot:
        return [(0, elements)]
    middle = secrets.randbelow(elements - spot)
    return [(0, spot), (middle, middle + spot), (elements - spot, elements)]


def to_arrays(plan: WorkloadPlan, blobs: Mapping[str, Received]) -> dict[str, Array]:
    """Bytes of mutated buffers as arrays of their types."""
    return {b.name: np.frombuffer(blobs[b.name], numpy_dtype(b.dtype)) for b in plan.mutated}
