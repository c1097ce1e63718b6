"""Device variables of a cubin: read together where they lie together, each compared with what it was."""

from typing import Any

import numpy as np

from warpsmith.backends.cuda.program import CudaProgram

FIRST, SECOND = 0x1000, 0x90000


class Driver:
    """Two stretches of memory; a copy that leaves one is an error, as on a device."""

    class Error(Exception):
        """As PyCUDA's."""

    def __init__(self) -> None:
        self.stretches = {FIRST: bytearray(range(256)) * 4, SECOND: bytearray(64)}
        self.copies = 0

    def memcpy_dtoh(self, host: Any, address: int) -> None:
        self.copies += 1
        for begin, data in self.stretches.items():
            if begin <= address and address + host.nbytes <= begin + len(data):
                host[:] = np.frombuffer(bytes(data[address - begin :][: host.nbytes]), np.uint8)
                return
        raise self.Error("illegal address")


class Module:
    """Its variables by name."""

    def __init__(self, driver: Driver, places: dict[str, tuple[int, int]]) -> None:
        self.driver, self.places = driver, places

    def get_global(self, name: str) -> tuple[int, int]:
        if name not in self.places:
            raise self.driver.Error("not found")
        return self.places[name]


def program(places: dict[str, tuple[int, int]], *more: str) -> tuple[CudaProgram, Driver]:
    driver = Driver()
    return CudaProgram(driver, Module(driver, places), [], [*places, *more], b""), driver


def test_hundreds_of_variables_are_one_copy() -> None:
    made, driver = program({f"v{i}": (FIRST + 4 * i, 4) for i in range(250)})
    before = driver.copies
    assert made.changed_globals() == []
    assert driver.copies - before == 1
    driver.stretches[FIRST][4 * 77 + 2] ^= 1
    assert made.changed_globals() == ["v77"]


def test_sections_that_lie_apart_are_read_apart() -> None:
    made, driver = program({"far": (SECOND, 8), "near": (FIRST, 4), "beside": (FIRST + 64, 4)})
    assert made.changed_globals() == []
    driver.stretches[SECOND][7] = 1
    driver.stretches[FIRST][64] ^= 1
    assert sorted(made.changed_globals()) == ["beside", "far"]


def test_what_lies_between_variables_is_none_of_them() -> None:
    made, driver = program({"a": (FIRST, 4), "b": (FIRST + 16, 4)})
    driver.stretches[FIRST][8] ^= 1
    assert made.changed_globals() == []


def test_a_variable_that_the_driver_does_not_find_is_left_out() -> None:
    made, _ = program({"a": (FIRST, 4)}, "internal")
    assert made.changed_globals() == []


def test_variables_of_several_allocations_are_read_in_as_many_copies() -> None:
    driver = Driver()
    # A second allocation follows the first at once, and no copy may cross from one to the other.
    driver.stretches[FIRST + 1024] = bytearray(64)
    places = {f"a{i}": (FIRST + 1024 - 40 + 4 * i, 4) for i in range(10)}
    places |= {f"b{i}": (FIRST + 1024 + 4 * i, 4) for i in range(5)}
    made = CudaProgram(driver, Module(driver, places), [], [*places], b"")
    before = driver.copies
    assert made.changed_globals() == []
    assert 2 <= driver.copies - before <= 5
    driver.stretches[FIRST + 1024][16] = 1
    driver.stretches[FIRST][1023] ^= 1
    assert sorted(made.changed_globals()) == ["a9", "b4"]
