"""Which shapes are left out after the user's kernel ended its process on one."""

from warpsmith.tuning.checks.faulty_shapes import FaultyShapes

LISTED = [{"rows": 16, "n": 4096}, {"rows": 24, "n": 8192}]


def test_nothing_is_left_out_before_a_fault() -> None:
    faulty = FaultyShapes(LISTED)
    assert not faulty.leaves_out({"rows": 1, "n": 1})
    assert faulty.left_out == 0


def test_a_fault_at_an_odd_extent_tells_of_extents_as_odd() -> None:
    faulty = FaultyShapes(LISTED)
    faulty.add({"rows": 16, "n": 4098})
    told = {n: faulty.leaves_out({"rows": 16, "n": n}) for n in (1, 97, 4095, 4098, 4100, 64)}
    assert told == {1: True, 97: True, 4095: True, 4098: True, 4100: False, 64: False}
    assert faulty.left_out == 4


def test_a_fault_with_several_odd_extents_tells_of_shapes_odd_in_all() -> None:
    faulty = FaultyShapes(LISTED)
    faulty.add({"rows": 17, "n": 4097})
    assert faulty.leaves_out({"rows": 1, "n": 97})
    assert not faulty.leaves_out({"rows": 16, "n": 97})
    assert not faulty.leaves_out({"rows": 17, "n": 4096})


def test_a_fault_at_extents_as_even_as_listed_ones_tells_nothing() -> None:
    faulty = FaultyShapes(LISTED)
    faulty.add({"rows": 8, "n": 1 << 20})
    assert not faulty.leaves_out({"rows": 8, "n": 1 << 20})
    assert faulty.known == [{"rows": 8, "n": 1 << 20}]


def test_what_a_baseline_knew_is_known_to_later_tasks() -> None:
    before = FaultyShapes(LISTED)
    before.add({"rows": 16, "n": 4097})
    later = FaultyShapes(LISTED, known=[*before.known])
    assert later.leaves_out({"rows": 16, "n": 4095})
    assert later.known == before.known
