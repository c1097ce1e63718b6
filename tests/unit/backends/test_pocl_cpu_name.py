"""The CPU's name, where PoCL's LLVM does not know the CPU."""

import ctypes
from types import SimpleNamespace

import pytest

from warpsmith.backends.opencl import pocl_cpu_name
from warpsmith.backends.opencl.backend import probe


def _device(*names: bytes) -> tuple[SimpleNamespace, list[ctypes.Array[ctypes.c_char]]]:
    texts = [ctypes.create_string_buffer(n) for n in names]
    table = (ctypes.c_uint64 * 512)(7, 0, 1 << 60, *(ctypes.addressof(t) for t in texts))
    return SimpleNamespace(int_ptr=ctypes.addressof(table), table=table), texts


def test_an_unknown_name_is_replaced() -> None:
    device, (other, name) = _device(b"pthread", b"generic")
    assert pocl_cpu_name.name_unknown_cpu(device)
    assert name.value == pocl_cpu_name.cpu_name()
    assert other.value == b"pthread"


def test_a_known_name_stays() -> None:
    device, (name,) = _device(b"znver3")
    assert not pocl_cpu_name.name_unknown_cpu(device)
    assert name.value == b"znver3"


def test_nothing_is_touched_where_two_strings_could_be_the_name() -> None:
    device, names = _device(b"generic", b"generic")
    assert not pocl_cpu_name.name_unknown_cpu(device)
    assert [n.value for n in names] == [b"generic", b"generic"]


@pytest.mark.parametrize("name", [name for name, _ in pocl_cpu_name._KNOWN])
def test_names_fit_where_they_go(name: bytes) -> None:
    assert len(name) <= len(pocl_cpu_name.UNKNOWN)


def test_after_a_probe_no_device_has_an_unknown_name() -> None:
    assert probe()
    from warpsmith.backends.opencl.platforms import devices

    assert not any(pocl_cpu_name.name_unknown_cpu(d) for d in devices())
