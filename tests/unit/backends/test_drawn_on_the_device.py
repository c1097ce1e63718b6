"""Large inputs on a device with its own memory: it copies the tiles of a pool, and no change is unseen."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.unit.backends.test_cuda_arguments import Stretch, host
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw, Routing
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.sandbox.memory import fresh_inputs
from warpsmith.sandbox.memory.buffers import WorkloadBuffers
from warpsmith.verify.inputs import POOL_ELEMENTS, TILE_ELEMENTS, draw_buffer, tiles_of

GUARD = 64
ELEMENTS = POOL_ELEMENTS + 5 * TILE_ELEMENTS + 123


def plan(dtype: Dtype, role: Role = Role.INPUT, draw: Draw | None = None) -> WorkloadPlan:
    x = BufferPlan(name="x", dtype=dtype, role=role, shape=(ELEMENTS,), draw=draw)
    y = BufferPlan(name="y", dtype=dtype, role=Role.OUTPUT, shape=(16,), draw=None)
    return WorkloadPlan("n", seed=11, arguments=(x, y))


def contents(memory: Stretch, of: WorkloadPlan) -> bytes:
    return bytes(memory.data[GUARD : GUARD + of.buffers[0].size_bytes])


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.INT32, Dtype.BOOL])
@pytest.mark.parametrize("role", [Role.INPUT, Role.INOUT])
def test_the_device_has_what_the_host_would_have_drawn(dtype: Dtype, role: Role) -> None:
    device, of = host(), plan(dtype, role)
    buffers = WorkloadBuffers(device, of, GuardZones(GUARD))
    buffers.rotation(CacheState.COLD)
    kept = [m for m in device.allocated if m.size_bytes == of.buffers[0].size_bytes + 2 * GUARD]
    for variant, memory in enumerate(m for m in kept if not m.is_free):
        if role is Role.INPUT and variant < 4:
            assert contents(memory, of) == draw_buffer(of.buffers[0], 11, variant).tobytes()
    assert contents(kept[0], of) == draw_buffer(of.buffers[0], 11).tobytes()
    sent = [m for m in device.allocated if m not in kept]
    assert max(m.size_bytes for m in sent) < of.buffers[0].size_bytes, "the pool alone is sent"
    buffers.free()
    assert all(m.is_free for m in device.allocated)


@pytest.mark.parametrize("at", [0, TILE_ELEMENTS, ELEMENTS // 2, ELEMENTS - 1])
def test_a_changed_element_is_seen_wherever_it_is(at: int) -> None:
    device, of = host(), plan(Dtype.FLOAT16)
    buffers = WorkloadBuffers(device, of, GuardZones(GUARD))
    memory = next(m for m in device.allocated if m.size_bytes == of.buffers[0].size_bytes + 2 * GUARD)
    assert buffers.changed_inputs(whole=True) == []
    assert buffers.changed_inputs(whole=False) == []
    memory.data[GUARD + 2 * at] ^= 1
    assert buffers.changed_inputs(whole=True) == ["x"]


def test_spots_see_the_first_and_the_last_elements() -> None:
    for at in (0, ELEMENTS - 1):
        device, of = host(), plan(Dtype.FLOAT16)
        buffers = WorkloadBuffers(device, of, GuardZones(GUARD))
        memory = next(m for m in device.allocated if m.size_bytes == of.buffers[0].size_bytes + 2 * GUARD)
        memory.data[GUARD + 2 * at] ^= 1
        assert buffers.changed_inputs(whole=False) == ["x"]


def test_redrawn_values_are_those_of_the_family_and_are_put_back() -> None:
    device, of = host(), plan(Dtype.FLOAT16)
    buffers = WorkloadBuffers(device, of, GuardZones(GUARD))
    memory = next(m for m in device.allocated if m.size_bytes == of.buffers[0].size_bytes + 2 * GUARD)
    buffers.redraw(0, Family.SCALED_UP, 1001)
    assert contents(memory, of) == draw_buffer(of.buffers[0], 11, 1001, Family.SCALED_UP).tobytes()
    assert buffers.changed_inputs(True, family=Family.SCALED_UP, variant=1001) == []
    buffers.undo_redraw(0)
    assert contents(memory, of) == draw_buffer(of.buffers[0], 11).tobytes()


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 1), (0, TILE_ELEMENTS), (TILE_ELEMENTS - 1, TILE_ELEMENTS + 1), (5, ELEMENTS)]
)
def test_a_span_of_tiles_is_that_of_the_whole(start: int, stop: int) -> None:
    buffer = plan(Dtype.FLOAT16).buffers[0]
    tiles = tiles_of(buffer, 11)
    assert tiles is not None
    np.testing.assert_array_equal(tiles.span(start, stop), draw_buffer(buffer, 11)[start:stop])


def test_what_is_arranged_or_small_is_drawn_by_the_host() -> None:
    arranged = Draw(distribution=Distribution.PERMUTATION)
    assert tiles_of(plan(Dtype.INT32, draw=arranged).buffers[0], 11) is None
    assert tiles_of(plan(Dtype.INT32).buffers[1], 11) is None
    assert tiles_of(plan(Dtype.FLOAT16).buffers[0], 11, family=Family.EDGE_CASE) is None


@pytest.mark.parametrize("role", [Role.INPUT, Role.INOUT])
@pytest.mark.parametrize("elements", [7, TILE_ELEMENTS + 3, ELEMENTS])
def test_fresh_inputs_are_of_no_earlier_launch_and_are_put_back(role: Role, elements: int) -> None:
    device = host()
    x = BufferPlan(name="x", dtype=Dtype.FLOAT16, role=role, shape=(elements,), draw=None)
    y = BufferPlan(name="y", dtype=Dtype.FLOAT16, role=Role.OUTPUT, shape=(16,), draw=None)
    of = WorkloadPlan("n", seed=11, arguments=(x, y))
    buffers = WorkloadBuffers(device, of, GuardZones(GUARD))
    sets = len({pair.inputs for pair in buffers.rotation(CacheState.COLD)})
    mine = [m for m in device.allocated if m.size_bytes == x.size_bytes + 2 * GUARD and not m.is_free]
    before = [bytes(m.data) for m in mine]
    seen = {contents(mine[0], of)}
    for _ in range(3):
        buffers.refresh(range(sets))
        seen.add(contents(mine[0], of))
        now = bytes(mine[0].data)
        assert (now[:GUARD], now[-GUARD:]) == (before[0][:GUARD], before[0][-GUARD:])
    assert len(seen) == 4
    values = np.frombuffer(contents(mine[0], of), np.float16).astype(np.float64)
    if elements > TILE_ELEMENTS:
        assert abs(values.std() - 1) < 0.1, "drawn as the job says"
    buffers.settle()
    assert [bytes(m.data) for m in mine] == before
    buffers.free()
    assert all(m.is_free for m in device.allocated)


ORDERS = {"distribution": Distribution.PERMUTATION, "per_row": True}
PICKED = {"distribution": Distribution.DISTINCT, "low": 5, "high": 90, "per_row": True}
STARTS = {"distribution": Distribution.OFFSETS, "low": 3, "high": 90, "least": 2, "per_row": True}


def refreshed(
    draws: Mapping[str, Mapping[str, Any]], shape: tuple[int, ...], times: int
) -> list[dict[str, Any]]:
    """Inputs before, after each of some refreshes, and after they are settled, by name."""
    inputs = tuple(BufferPlan(n, Dtype.INT32, Role.INPUT, shape, Draw(**d)) for n, d in draws.items())
    y = BufferPlan(name="y", dtype=Dtype.INT32, role=Role.OUTPUT, shape=(1,), draw=None)
    device, of = host(), WorkloadPlan("n", seed=11, arguments=(*inputs, y))
    buffers = WorkloadBuffers(device, of, GuardZones(GUARD))
    memories = dict(zip(draws, device.allocated, strict=False))
    found = []
    for turn in range(times + 2):
        if turn == times + 1:
            buffers.settle()
        elif turn:
            buffers.refresh([0])
        now = {n: bytes(m.data)[GUARD:-GUARD] for n, m in memories.items()}
        found.append({n: np.frombuffer(data, np.int32).reshape(shape) for n, data in now.items()})
    return found


def test_inputs_whose_elements_depend_on_each_other_are_drawn_anew_and_keep_what_they_promise() -> None:
    """A kernel that remembers what follows from an order gains nothing where no order comes again."""
    draws = {"orders": ORDERS, "picked": PICKED, "starts": STARTS}
    own, *fresh, settled = refreshed(draws, (6, 32), 4)
    for name in draws:
        assert np.array_equal(own[name], settled[name])
        rows = [row.tobytes() for now in (own, *fresh) for row in now[name]]
        assert len(set(rows)) == len(rows), name
    for now in fresh:
        assert (np.sort(now["orders"], axis=1) == np.arange(32)).all()
        assert (np.diff(np.sort(now["picked"], axis=1), axis=1) > 0).all()
        assert (now["picked"].min() >= 5, now["picked"].max() < 90) == (True, True)
        assert (np.diff(now["starts"], axis=1) >= 2).all()
        assert (now["starts"][:, 0] == 3).all()
        assert (now["starts"][:, -1] == 90).all()


def test_parts_of_a_routing_belong_together_in_new_inputs_too() -> None:
    routed = {"distribution": Distribution.ROUTING, "high": 12}
    parts = {
        part: routed | {"routing": Routing(part=part, experts=8, chosen=2, block=4)}
        for part in ("rows", "experts", "count")
    }
    own, *fresh, _ = refreshed(parts, (60,), 3)
    assert len({now["rows"].tobytes() for now in (own, *fresh)}) == 4
    for now in fresh:
        used = int(now["count"][0])
        assert (now["rows"][used:] == 24).all()
        filled = now["rows"][:used].reshape(-1, 4)
        assert (filled < 24).any(axis=1).all(), "no block of an expert is empty"
        assert not now["experts"][used // 4 :].any()


def test_what_is_given_or_dear_to_draw_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_inputs, "MOST_ARRANGED", 191)
    draws = {"orders": ORDERS, "ones": {"distribution": Distribution.CONSTANT, "low": 1}}
    own, fresh, _ = refreshed(draws, (6, 32), 1)
    assert all(np.array_equal(own[name], fresh[name]) for name in draws)
