"""HIP's back end on a stand-in without a device: what it calls, with what, and what it makes of the answers.

Nothing here says how an AMD device behaves.
"""

import ast
import ctypes
import inspect
import re
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from testbed.hip_python import interface, over_cuda
from testbed.hip_python.in_memory import InMemoryHip, Kernel
from testbed.hip_python.interface import hipDeviceAttribute_t, hipError_t
from warpsmith.backends.base import Bound, CompileRequest, DeviceFault, LaunchRefused, Packed, Repeats
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip import backend as hip
from warpsmith.extensions.hip.device import HipDevice
from warpsmith.extensions.hip.probe import device_info
from warpsmith.testing.backend_contract import CountingWatch

ONE = LaunchSize((1, 1, 1), (64, 1, 1))
BACKENDS = Path(hip.__file__).parent
COUNTER, TOTAL = 4, 8


NO_TABLES = b"\x7fELF" + bytes(60)
SOURCE = """
namespace a { __device__ float total[2]; }
extern "C" __global__ void f(float* y) { y[0] = a::total[1]++; }
"""


def compiled(*entries: str, variables: tuple[str, ...] = (), binary: bytes = NO_TABLES) -> Compiled:
    first, *then = entries or ("f",)
    return Compiled(binary, first, CompileFacts(), globals=variables, then_entries=tuple(then))


def opened(stand_in: InMemoryHip) -> HipDevice:
    return HipDevice(stand_in, device_info(stand_in, 0))


def add_one(hip_: InMemoryHip, data: bytes) -> None:
    """`*x += 1`, of the int that the first parameter points to."""
    (address,) = struct.unpack_from("<Q", data)
    ctypes.c_int32.from_address(address).value += 1


def names_in_use() -> set[str]:
    """Names of hip-python that the back end's files use."""
    nodes = [n for f in BACKENDS.glob("*.py") for n in ast.walk(ast.parse(f.read_text()))]
    names = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return {name for name in names if re.match(r"hip(rtc)?[A-Z]|HIP_", name)}


def test_the_back_end_uses_what_was_recorded_of_the_interface_and_all_of_it() -> None:
    kinds = (interface.hipDeviceAttribute_t, interface.hipStreamCaptureMode)
    known = {*interface.RUNTIME, *interface.COMPILER, *(m.name for kind in kinds for m in kind)}
    known |= {name for name in dir(interface) if name.startswith(("hip", "HIP_"))}
    used = names_in_use()
    assert used <= known
    assert {*interface.RUNTIME, *interface.COMPILER} <= used, "nothing is recorded that nobody calls"


@pytest.mark.parametrize("stand_in", [over_cuda, InMemoryHip()], ids=["over CUDA's driver", "in memory"])
def test_a_stand_in_has_every_call_with_its_parameters(stand_in: Any) -> None:
    for name, call in interface.RUNTIME.items():
        found = list(inspect.signature(getattr(stand_in, name)).parameters)
        assert found == call.parameters.split(), name


def test_calls_are_made_with_as_many_arguments_as_they_have() -> None:
    seen = 0
    for file in BACKENDS.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            name, known = node.func.attr, {**interface.RUNTIME, **interface.COMPILER}.get(node.func.attr)
            if known is None or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            seen += 1
            assert len(node.args) == len(known.parameters.split()), name
    assert seen > 40


def test_devices_are_described_by_their_attributes_and_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = hipDeviceAttribute_t
    attributes = {
        kinds.hipDeviceAttributeWarpSize: 64,
        kinds.hipDeviceAttributeMultiprocessorCount: 304,
        kinds.hipDeviceAttributeMaxSharedMemoryPerBlock: 65536,
        kinds.hipDeviceAttributeL2CacheSize: 4 << 20,
        kinds.hipDeviceAttributeMaxThreadsPerMultiProcessor: 0,
        kinds.hipDeviceAttributeMaxRegistersPerBlock: 0,
    }
    stand_in = InMemoryHip(devices=2, attributes=attributes)
    monkeypatch.setitem(sys.modules, "hip", SimpleNamespace(hip=stand_in))
    first, second = hip.probe()
    assert (first.backend, first.architecture, first.name) == (Backend.HIP, "gfx942", "AMD Instinct MI300X")
    assert (first.index, second.index) == (0, 1)
    assert first.uid != second.uid
    assert first.driver == "6.4.43483"
    limits = first.limits
    assert (limits.warp_size, limits.multiprocessors, limits.max_shared_per_block) == (64, 304, 65536)
    assert limits.l2_bytes == 256 << 20, "the cache before the memory"
    assert (limits.max_threads_per_multiprocessor, limits.registers_per_block) == (2048, 65536)
    assert limits.total_memory_bytes == 192 << 30
    stand_in.architecture = "gfx90a:sramecc+:xnack-"
    assert hip.probe()[0].limits.l2_bytes == 4 << 20
    assert hip.open_device(1).info == hip.probe()[1]


def no_runtime() -> tuple[object, ...]:
    raise RuntimeError("failed to dlopen 'libamdhip64.so'")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (None, r"hip-python is missing; install warpsmith\[hip\]"),
        (SimpleNamespace(hip=SimpleNamespace(hipGetDeviceCount=no_runtime)), "ROCm's runtime .* is missing"),
        (SimpleNamespace(hip=InMemoryHip(devices=0)), r"no AMD device; .*/dev/kfd.*hipErrorNoDevice"),
    ],
)
def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, module: Any, words: str) -> None:
    monkeypatch.setitem(sys.modules, "hip", module)
    hip.import_device()
    with pytest.raises(Unavailable, match=words):
        hip.probe()


def test_memory_keeps_what_is_written_gathered_and_filled() -> None:
    device = opened(InMemoryHip())
    for apart in (False, True):
        device.apart = apart
        one, two = device.allocate(256), device.allocate(256)
        data = np.arange(256, dtype=np.uint8)
        one.write(data)
        two.fill(b"\xff\xff\xff\xff", 0, 256)
        assert two.read(0, 256) == b"\xff" * 256
        two.fill(b"\x5a\xa5", 10, 4)
        two.fill(b"\x01", 20, 1)
        assert (two.read(10, 4), two.read(20, 2)) == (b"\x5a\xa5\x5a\xa5", b"\x01\xff")
        two.copy_from(one, 16, 32)
        assert two.read(32, 16) == data[32:48].tobytes()
        two.gather(one, [64, 0], 8, slice(0, 12))
        assert two.read(0, 12) == data[64:72].tobytes() + data[:4].tobytes()
        two.fill(b"\x00", 0, 0)
        assert two.read(5, 0) == b""
        one.free()
        two.free()


def test_what_memory_was_freed_is_no_longer_there() -> None:
    stand_in = InMemoryHip()
    device = opened(stand_in)
    device.apart = True
    memory = device.allocate(64)
    memory.free()
    assert not stand_in.memory
    with pytest.raises(DeviceFault, match="a copy failed: hipErrorInvalidValue"):
        memory.read(0, 64)


def test_a_launch_passes_its_arguments_in_one_buffer_by_the_rules_of_c() -> None:
    stand_in = InMemoryHip({"f": lambda *_: None})
    device = opened(stand_in)
    program, memory = device.load(compiled()), device.allocate(64)
    size = LaunchSize((3, 2, 1), (32, 2, 1), shared_bytes=640)
    arguments: list[Bound] = [
        np.int8(-1),
        (memory, 16),
        np.float32(2.5),
        None,
        Packed(b"abcdef", 2),
        np.float64(-1),
    ]
    device.launch(program, arguments, size)
    (given,) = stand_in.launches
    assert given["data"] == struct.pack(
        "<bxxxxxxxQfxxxxQ6sxxd", -1, memory.address + 16, 2.5, 0, b"abcdef", -1
    )
    assert (given["grid"], given["block"], given["shared"]) == ((3, 2, 1), (32, 2, 1), 640)


def test_a_cooperative_launch_passes_the_address_of_each_argument() -> None:
    stand_in = InMemoryHip({"f": add_one})
    device = opened(stand_in)
    program, memory = device.load(compiled()), device.allocate(COUNTER)
    memory.fill(b"\x00", 0, COUNTER)
    device.launch(program, [(memory, 0)], LaunchSize((1, 1, 1), (64, 1, 1), cooperative=True))
    assert stand_in.launches[0]["cooperative"]
    assert memory.read(0, COUNTER) == b"\x01\x00\x00\x00"


def test_a_sequence_is_launched_in_order_with_what_each_takes() -> None:
    seen: list[tuple[str, bytes]] = []
    kernels: dict[str, Kernel] = {
        "f": lambda _, data: seen.append(("f", data)),
        "g": lambda _, data: seen.append(("g", data)),
    }
    device = opened(InMemoryHip(kernels))
    size = LaunchSize((1, 1, 1), (1, 1, 1), takes=(1,), then=(LaunchSize((1, 1, 1), (1, 1, 1), takes=(0,)),))
    device.launch(device.load(compiled("f", "g")), [np.int32(1), np.int32(2)], size)
    assert seen == [("f", b"\x02\0\0\0"), ("g", b"\x01\0\0\0")]


def test_variables_that_a_launch_wrote_are_told_and_symbols_are_filled() -> None:
    def leaves_a_mark(hip_: InMemoryHip, _data: bytes) -> None:
        (address,) = [a for a, m in hip_.memory.items() if len(m) == TOTAL]
        hip_.memory[address][3] = b"\x07"

    stand_in = InMemoryHip({"f": leaves_a_mark}, variables={"kept": 4, "_ZN1a5totalE": TOTAL})
    device = opened(stand_in)
    # Another machine's, with the same tables of symbols.
    made = compile_cuda(CompileRequest(Backend.CUDA, SOURCE, "f", (), (), "nvrtc", "sm_90", 0))
    assert isinstance(made, Compiled), made
    program = device.load(compiled(variables=("kept", "_ZN1a5totalE", "internal"), binary=made.binary))
    assert program.changed_globals() == []
    device.launch(program, [], ONE)
    assert program.changed_globals() == ["_ZN1a5totalE"]
    program.write_symbol("total", np.array([1.5, 2.5], np.float32))
    assert program.read_symbol("total") == np.array([1.5, 2.5], np.float32).tobytes()
    assert program.changed_globals() == [], "what the job filled is not the kernel's doing"
    with pytest.raises(LaunchRefused, match="symbol total: has 12 bytes in the job and 8 in the kernel"):
        program.write_symbol("total", np.zeros(3, np.float32))
    with pytest.raises(LaunchRefused, match="symbol kept: the driver finds no such variable"):
        program.write_symbol("kept", np.zeros(1, np.float32))
    program.unload()
    assert not [m for m in stand_in.memory.values() if len(m) == TOTAL]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (hipError_t.hipErrorInvalidValue, LaunchRefused),
        (hipError_t.hipErrorInvalidConfiguration, LaunchRefused),
        (hipError_t.hipErrorLaunchOutOfResources, LaunchRefused),
        (hipError_t.hipErrorCooperativeLaunchTooLarge, LaunchRefused),
        (hipError_t.hipErrorNotSupported, LaunchRefused),
        (hipError_t.hipErrorIllegalAddress, DeviceFault),
        (hipError_t.hipErrorLaunchFailure, DeviceFault),
        (hipError_t.hipErrorECCNotCorrectable, DeviceFault),
        (hipError_t.hipErrorUnknown, DeviceFault),
    ],
)
def test_an_error_of_a_launch_is_a_refusal_or_a_fault(error: hipError_t, kind: type[Exception]) -> None:
    stand_in = InMemoryHip({"f": lambda *_: None})
    device = opened(stand_in)
    program = device.load(compiled())
    stand_in.fails["hipModuleLaunchKernel"] = error
    with pytest.raises(kind, match=f"the launch was refused: {error.name}"):
        device.launch(program, [], ONE)


def test_a_fault_that_shows_only_at_the_end_of_a_launch_is_a_fault() -> None:
    stand_in = InMemoryHip({"f": lambda *_: None})
    device = opened(stand_in)
    program = device.load(compiled())
    # A kernel's own error, whatever its name, ends the device.
    stand_in.fails["hipStreamSynchronize"] = hipError_t.hipErrorInvalidValue
    with pytest.raises(DeviceFault, match="the kernel faulted: hipErrorInvalidValue"):
        device.launch(program, [], ONE)


def test_what_is_no_code_object_or_lacks_an_entry_is_refused_and_unloaded() -> None:
    stand_in = InMemoryHip({"f": lambda *_: None}, variables={"total": TOTAL})
    device = opened(stand_in)
    with pytest.raises(LaunchRefused, match="no code object"):
        device.load(Compiled(b"not a binary" * 9, "f", CompileFacts()))
    assert "hipModuleLoadData" not in stand_in.calls, "the runtime would read past its end"
    with pytest.raises(LaunchRefused, match="hipErrorNotFound"):
        device.load(compiled("g"))
    assert stand_in.calls.count("hipModuleUnload") == 1
    stand_in.fails["hipModuleLoadData"] = hipError_t.hipErrorNoBinaryForGpu
    with pytest.raises(LaunchRefused, match="hipErrorNoBinaryForGpu"):
        device.load(compiled())


def test_clusters_are_refused() -> None:
    device = opened(InMemoryHip({"f": lambda *_: None}))
    with pytest.raises(LaunchRefused, match="no clusters"):
        device.launch(device.load(compiled()), [], LaunchSize((2, 1, 1), (64, 1, 1), cluster=(2, 1, 1)))


@pytest.mark.parametrize("launch_us", [3.0, 900.0])
def test_timing_replays_graphs_and_counts_every_launch(launch_us: float) -> None:
    stand_in = InMemoryHip({"f": add_one}, launch_us=launch_us)
    device = opened(stand_in)
    device._warm = True
    program, memory = device.load(compiled()), device.allocate(COUNTER)
    memory.fill(b"\x00", 0, COUNTER)
    watch = CountingWatch()
    repeats = Repeats(lambda _: 5, 0, lambda times: False)
    times, launches = device.time(program, [[(memory, 0)]], ONE, repeats, watch)
    assert times == pytest.approx([launch_us] * 5)
    assert launches == (64 if launch_us < 4 else 1)
    assert int.from_bytes(memory.read(0, COUNTER), "little") == len(stand_in.launches)
    assert [c for c in watch.calls if c[1] is not None] == [
        (when, n) for n in range(5) for when in ("before", "after")
    ]
    made = stand_in.calls.count("hipGraphInstantiateWithFlags")
    assert made == stand_in.calls.count("hipGraphExecDestroy") > 0
    device.close()


def test_a_refusal_within_a_capture_ends_the_capture() -> None:
    stand_in = InMemoryHip({"f": lambda *_: None})
    device = opened(stand_in)
    program = device.load(compiled())
    stand_in.fails["hipModuleLaunchKernel"] = hipError_t.hipErrorInvalidValue
    repeats = Repeats(lambda _: 2, 1, lambda times: False, known_us=1e5)
    with pytest.raises(LaunchRefused):
        device.time(program, [[]], ONE, repeats, CountingWatch())
    assert stand_in.calls[-1] == "hipStreamEndCapture"
    del stand_in.fails["hipModuleLaunchKernel"]
    assert device.time(program, [[]], ONE, repeats, CountingWatch())[1] == 1


def test_a_fault_in_a_timed_launch_is_told() -> None:
    stand_in = InMemoryHip({"f": lambda *_: None})
    device = opened(stand_in)
    program = device.load(compiled())
    stand_in.fails["hipEventSynchronize"] = hipError_t.hipErrorLaunchFailure
    with pytest.raises(DeviceFault, match="a timed launch faulted: hipErrorLaunchFailure"):
        device.time(program, [[]], ONE, Repeats(lambda _: 2, 0, lambda times: False), CountingWatch())


def test_no_device_of_that_number_cannot_be_opened() -> None:
    stand_in = InMemoryHip()
    info = device_info(stand_in, 0).model_copy(update={"index": 3})
    with pytest.raises(DeviceFault, match="the device cannot be opened: hipErrorInvalidDevice"):
        HipDevice(stand_in, info)
