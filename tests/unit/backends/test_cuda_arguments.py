"""Parameters of CUDA kernels: every byte of them, and the compiler's word on where they lie."""

import random
import struct
from collections.abc import Sequence
from itertools import count
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.argument_jobs import ARGUMENTS, SOURCE, every_kind
from warpsmith.backends.base import Array, Bound, CompileRequest, Memory, Packed, pieces_of
from warpsmith.backends.cuda.arguments import parameter_buffer, parameter_mismatch, parameter_places
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.backends.cuda.program import CudaFunction
from warpsmith.domain.arguments.field import Field
from warpsmith.domain.arguments.layout import struct_extent
from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.by_value_plan import ParameterSlot, parameters_of
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.layout_checks import layout_checks
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import BufferPlan, Compiled, plan_workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.sandbox.memory.binding import AddressTables, bind
from warpsmith.sandbox.memory.buffers import WorkloadBuffers
from warpsmith.sandbox.memory.rotation import Pair
from warpsmith.testing.jobs import DEVICE
from warpsmith.verify.dtypes import numpy_dtype


class Stretch:
    """Memory at an address that nothing else has."""

    addresses = count(0x7000_0000_0000, 1 << 24)

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.address = next(self.addresses)
        self.data = bytearray(size_bytes)
        self.is_free = False

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        raw = np.ascontiguousarray(data).tobytes()
        self.data[offset_bytes : offset_bytes + len(raw)] = raw

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        return bytes(self.data[offset_bytes : offset_bytes + size_bytes])

    def copy_from(self, other: Memory, size_bytes: int, offset_bytes: int = 0) -> None:
        self.write(np.frombuffer(other.read(offset_bytes, size_bytes), np.uint8), offset_bytes)

    def gather(self, source: Memory, begins: Sequence[int], piece_bytes: int, to: slice) -> None:
        for at, begin, size in pieces_of(begins, piece_bytes, to):
            self.write(np.frombuffer(source.read(begin, size), np.uint8), at)

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        self.write(np.frombuffer(pattern * (size_bytes // len(pattern)), np.uint8), offset_bytes)

    def free(self) -> None:
        self.is_free = True


class Host:
    """A device of which only the memory is real."""

    info = DEVICE

    def __init__(self) -> None:
        self.allocated: list[Stretch] = []

    def allocate(self, size_bytes: int) -> Memory:
        self.allocated.append(Stretch(size_bytes))
        return self.allocated[-1]


def host() -> Any:
    return Host()


def compiled(text: str, entry: str, parameters: Sequence[ParameterSlot] = ()) -> Compiled | Rejected:
    request = CompileRequest(
        Backend.CUDA, text, entry, (), (), "nvrtc", "sm_90", 0, parameters=tuple(parameters)
    )
    return compile_cuda(request)


def job_compiled(job: Job) -> Compiled | Rejected:
    text = job.kernel.text + layout_checks(job.kernel)
    return compiled(text, job.kernel.entry, parameters_of(job.kernel))


def test_a_kernel_with_arguments_of_every_kind_compiles_with_its_layout_checked() -> None:
    assert isinstance(job_compiled(every_kind()), Compiled)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("uint3 head;", "uint4 head;", "p has 64 bytes in the job"),
        ("bool more;\n  __nv_bfloat16 scale;", "__nv_bfloat16 scale;\n  bool more;", "p.more is at byte 44"),
        ("float low, high", "float high, low", "p.range.low is at byte 0 in the job"),
    ],
)
def test_a_struct_that_is_laid_out_otherwise_does_not_compile(old: str, new: str, words: str) -> None:
    found = job_compiled(every_kind(source=SOURCE.replace(old, new)))
    assert isinstance(found, Rejected)
    assert words in found.reason


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "n", "dtype": "int64", "role": "scalar", "value": "n"}, r"argument 8 \(n\) has 8 bytes"),
        (
            {"name": "w", "dtype": "float32", "role": "scalar", "values": [1, 2]},
            r"\(w\) has 8 bytes .* and 16 in",
        ),
    ],
)
def test_without_a_types_name_the_binary_says_what_a_kernel_takes(
    changed: dict[str, Any], words: str
) -> None:
    arguments = [changed if a["name"] == changed["name"] else a for a in ARGUMENTS]
    found = job_compiled(every_kind(arguments=arguments))
    assert isinstance(found, Rejected)
    with pytest.raises(ValueError, match=words):
        raise ValueError(found.reason)


def test_a_wrong_number_or_alignment_of_arguments_is_named() -> None:
    wanted = (ParameterSlot("a", 0, 4), ParameterSlot("b", 8, 8))
    assert parameter_mismatch(wanted, ((0, 4), (8, 8))) == ""
    assert parameter_mismatch(wanted, ()) == "", "not known"
    assert "has 1 parameters, and the job 2 arguments (a, b)" in parameter_mismatch(wanted, ((0, 4),))
    assert "argument 1 (b) begins at byte 8" in parameter_mismatch(wanted, ((0, 4), (4, 8)))


SCALARS = {
    "bool": "bool",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int32": "int",
    "float32": "float",
    "int64": "long long",
    "float64": "double",
}
VECTORS = {"int8": "char", "uint16": "ushort", "int32": "int", "float32": "float"}


def random_fields(rng: random.Random, depth: int = 0) -> tuple[list[dict[str, Any]], str]:
    """Fields of a struct, and their declarations in C."""
    fields: list[dict[str, Any]] = []
    text = ""
    for n in range(rng.randint(0 if depth else 1, 5)):
        name, kind = f"m{n}", rng.choice(("scalar", "array", "vector", "pointer", "struct"))
        field: dict[str, Any] = {"name": name}
        if kind == "struct" and depth < 2:
            inner, declared = random_fields(rng, depth + 1)
            size = rng.choice((None, 3))
            fields.append(field | {"role": "struct", "fields": inner} | ({"count": size} if size else {}))
            text += f"struct {{ {declared} }} {name}{f'[{size}]' if size else ''}; "
        elif kind == "pointer":
            fields.append(field | {"role": "pointer", "count": 2})
            text += f"float* {name}[2]; "
        elif kind == "vector":
            dtype, lanes = rng.choice(list(VECTORS)), rng.choice((2, 3, 4))
            fields.append(field | {"dtype": dtype, "values": [0] * lanes})
            text += f"{VECTORS[dtype]}{lanes} {name}; "
        else:
            dtype = rng.choice(list(SCALARS))
            size = 3 if kind == "array" else None
            fields.append(field | {"dtype": dtype, "value": 0} | ({"count": size} if size else {}))
            text += f"{SCALARS[dtype]} {name}{f'[{size}]' if size else ''}; "
    return fields, text


def test_random_structs_lie_where_the_compiler_puts_them() -> None:
    rng = random.Random(7)
    text, arguments = "", []
    for n in range(60):
        fields, declared = random_fields(rng)
        text += f"struct S{n} {{ {declared} }};\n"
        arguments.append({"name": f"s{n}", "role": "struct", "type": f"S{n}", "fields": fields})
    listed = ", ".join(f"S{n} s{n}" for n in range(60))
    text += f'extern "C" __global__ void f({listed}, float* y) {{ y[0] = 1.0f; }}'
    y = {"name": "y", "dtype": "float32", "role": "output", "shape": [1]}
    kernel = Kernel.model_validate(
        {
            "backend": "cuda",
            "source": text,
            "entry": "f",
            "arguments": [*arguments, y],
            "launch": {"grid": [1], "block": [1]},
        }
    )
    checks = layout_checks(kernel)
    assert checks.count("static_assert") > 150
    found = compiled(text + checks, "f", parameters_of(kernel))
    assert isinstance(found, Compiled), found.reason


def test_every_byte_of_the_parameters() -> None:
    job = every_kind()
    plan = plan_workload(job.kernel, job.workloads[0], {}, seed=1)
    device = host()
    buffers = WorkloadBuffers(device, plan, GuardZones(64))
    bound = buffers.bound(Pair(0, 0), buffers.scratch_of(LaunchSize((1, 1, 1), (1, 1, 1))))
    memory = {b.name: s.memory.address + 64 for b, s in zip(plan.buffers, buffers._sets[0], strict=True)}
    tables = [s for s in device.allocated if s.size_bytes in (2 * 8 + 128, 3 * 8 + 128)]
    by_size = {s.size_bytes: s.address + 64 for s in tables}
    multiplier = 2**32 * (8 - 7) // 7 + 1
    want = struct.pack("<QQQIIIff?x", memory["x"], memory["seen"], 0, multiplier, 3, 7, -0.5, 0.5, True)
    want += np.array(1.5, ml_dtypes.bfloat16).tobytes() + struct.pack("<dd", 0.0, 5.0)
    assert len(want) == 64
    want += bytes(1) + bytes(7) + struct.pack("<Q", by_size[2 * 8 + 128])
    want += struct.pack("<4f", 1.0, 2.0, 0.25, 4.0)
    want += struct.pack("<QQQQi", memory["narrow"], 0, by_size[3 * 8 + 128], memory["y"], 5000)
    assert parameter_buffer(bound) == want
    places = parameters_of(job.kernel)
    assert len(want) == places[-1].offset_bytes + places[-1].size_bytes
    first, second = (s.data[64:-64] for s in sorted(tables, key=lambda s: s.size_bytes))
    assert struct.unpack("<2Q", first) == (memory["x"], memory["rows"])
    assert struct.unpack("<3Q", second) == tuple(memory["rows"] + 4 * 5000 * n for n in range(3))


def test_scalars_are_packed_as_they_were_one_by_one() -> None:
    memory = Stretch(64)
    bound: list[Bound] = [np.int8(-1), (memory, 16), np.float16(1.5), None, np.uint64(2**63), np.float32(2)]
    want = struct.pack("<b7xQe6xQQf", -1, memory.address + 16, 1.5, 0, 2**63, 2.0)
    assert parameter_buffer(bound) == want
    assert parameter_buffer([numpy_dtype(Dtype.BFLOAT16).type(1.5)]) == b"\xc0\x3f"


def test_every_parameter_begins_where_the_buffer_has_it() -> None:
    bound: list[Bound] = [np.int8(1), Packed(b"abcdefgh", 4), None, np.int16(2), np.float64(1.0)]
    contents, places = parameter_places(bound)
    assert places == (0, 4, 16, 24, 32)
    assert contents[4:12] == b"abcdefgh"
    assert contents[24:26] == b"\x02\x00"
    assert len(contents) == 40


class Function:
    """Stands for a function of PyCUDA: keeps what a prepared call would pack."""

    def __init__(self) -> None:
        self.formats: list[str] = []

    def prepare(self, formats: list[str]) -> None:
        self.formats += formats


def test_a_prepared_call_gets_all_parameters_as_one_value() -> None:
    function = Function()
    kernel = CudaFunction(function)
    for _ in range(2):
        data = kernel.parameters([np.int32(7), (Stretch(8), 0)])
        assert len(data) == 16
    assert function.formats == ["16s"]


def tables_of(job: Job) -> tuple[Any, AddressTables, dict[str, tuple[Memory, int]]]:
    plan = plan_workload(job.kernel, job.workloads[0], {}, seed=1)
    device = host()
    buffers: dict[str, tuple[Memory, int]] = {
        b.name: (device.allocate(b.size_bytes), 0) for b in plan.buffers if isinstance(b, BufferPlan)
    }
    return device, AddressTables(device, plan.tables, 64), buffers


def test_arrays_of_addresses_are_guarded_and_read_only() -> None:
    device, tables, buffers = tables_of(every_kind())
    before = len(device.allocated)
    pair = Pair(0, 0)
    pointers = tables.bind(pair, buffers)
    assert set(pointers) == {"tables", "places"}
    assert (tables.guard_violations(pair), tables.changed(pair)) == ([], [])
    memory, offset = pointers["places"]
    assert isinstance(memory, Stretch)
    memory.data[offset + 23] ^= 1
    assert tables.changed(pair) == ["places"]
    memory.data[offset + 24] ^= 1
    assert tables.guard_violations(pair) == ["places"]
    memory.data[offset - 1] ^= 1
    assert tables.guard_violations(pair) == ["places"]
    other = tables.bind(Pair(1, 0), buffers)
    assert other["tables"][0] is not pointers["tables"][0], "a pair has addresses of its own"
    tables.free()
    assert all(s.is_free for s in device.allocated[before:])


def test_a_pairs_structs_and_arrays_lead_to_the_outputs_of_that_pair() -> None:
    job = every_kind()
    plan = plan_workload(job.kernel, job.workloads[0], {}, seed=1)
    pointers: dict[str, tuple[Memory, int]] = {
        name: (Stretch(8), 0) for name in ("x", "rows", "seen", "narrow", "y", "tables", "places")
    }
    elsewhere = pointers | {"seen": (Stretch(8), 0)}
    one, two = parameter_buffer(bind(plan, pointers)), parameter_buffer(bind(plan, elsewhere))
    apart = [n for n, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    assert apart
    assert set(apart) <= set(range(8, 16))


def test_a_struct_takes_what_its_largest_member_asks_for() -> None:
    fields = [Field.model_validate({"name": "a", "dtype": "int8", "value": 0, "align": 64})]
    assert struct_extent(fields, Backend.CUDA).size_bytes == 64
    assert struct_extent((), Backend.CUDA).size_bytes == 1
    vector = [Field.model_validate({"name": "v", "dtype": "float32", "values": [1, 2, 3]})]
    sizes = {b: struct_extent(vector, b) for b in (Backend.CUDA, Backend.OPENCL)}
    assert (sizes[Backend.CUDA].size_bytes, sizes[Backend.CUDA].align) == (12, 4)
    assert (sizes[Backend.OPENCL].size_bytes, sizes[Backend.OPENCL].align) == (16, 16)
