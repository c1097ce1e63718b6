"""Native code that is no kernel: refused by the words of its source, and by what the compiler made of it.

Each of the two is tried alone, with the other switched off.
"""

import struct
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import CUDA_DEVICE, SCALE, built, kernel, rejected, source
from tests.sandbox.native_objects import COMPILED, DIED, REFUSED, made_of, objects_in
from warpsmith.backends.binaries.native_object import inspect
from warpsmith.backends.probes.preprocessor_probes import FILE_PROBES, PROBES
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Stage
from warpsmith.sandbox import CompilePool

BYTES = "__constant uchar bytes[72] = {0xb8, 1, 0, 0, 0, 0xc3};"
READS = f"y[i] = n < 0 ? ((volatile __constant uchar*)bytes)[i] : 0; {SCALE}"
FEW = "__constant uchar bytes[4] = {0x0f, 5, 0xc3, 1};"
BEFORE = {
    "constructor": ("__attribute__((constructor)) void early(void) { volatile int x = 1; }", SCALE),
    "destructor": ("__attribute__((destructor)) void late(void) { volatile int x = 1; }", SCALE),
    "table of constructors": (
        '__attribute__((section(".init_array"))) __constant ulong bytes[1] = {0};',
        READS,
    ),
    "data among code": (f'__attribute__((section(".text"))) {BYTES}', READS),
    "four bytes among code": (f'__attribute__((section(".text"))) {FEW}', READS),
    "data by pragma": (f'#pragma clang section rodata = ".text"\n{BYTES}', READS),
    "a section of its own": (f'__attribute__((section(".mine"))) {BYTES}', READS),
    "data that is written": (f'__attribute__((section(".data"))) {BYTES}', READS),
}


@pytest.mark.parametrize("form", BEFORE)
def test_the_compiled_object_is_refused_by_itself(form: str, tmp_path: Path) -> None:
    text = source(Backend.OPENCL, *reversed(BEFORE[form]))
    outcome, reason = made_of(text, tmp_path, words=False)
    assert outcome == REFUSED, reason
    assert "the compiled kernel is refused" in reason
    # Without both it is loaded, and what runs while it is may end the process.
    assert made_of(text, tmp_path / "open", words=False, objects=False)[0] in (COMPILED, DIED)


@pytest.mark.parametrize("form", BEFORE)
def test_the_words_are_refused_by_themselves(form: str, tmp_path: Path) -> None:
    outcome, reason = made_of(source(Backend.OPENCL, *reversed(BEFORE[form])), tmp_path, objects=False)
    assert outcome == REFUSED
    assert "not allowed" in reason


def test_no_constructor_runs_while_a_kernel_is_compiled(
    pool: CompilePool, opencl_info: DeviceInfo, tmp_path: Path
) -> None:
    """It would end the process in which it runs; the process says instead what it refused."""
    endless = "__attribute__((constructor)) void early(void) { *(volatile int*)0 = 1; }"
    outcome, reason = made_of(source(Backend.OPENCL, SCALE, endless), tmp_path, words=False)
    assert (outcome, ".init_array" in reason) == (REFUSED, True)
    result = rejected(pool, opencl_info, source(Backend.OPENCL, SCALE, endless))
    assert result.stage is Stage.COMPILE
    assert "constructor" in result.reason


@pytest.mark.parametrize(
    "before",
    [
        '#ifdef SOMEWHERE_ELSE\nvoid pause(void) { asm("pause"); }\n#endif',
        '#define PAUSE __asm__ volatile("pause")',
        "#if 0\n__attribute__((constructor)) void early(void) {}\n#endif",
        '#define ASSERT(x) ((x) ? 0 : printf("%s", __FILE__))',
    ],
)
def test_what_is_not_compiled_does_not_count(pool: CompilePool, opencl_info: DeviceInfo, before: str) -> None:
    built(pool, opencl_info, source(Backend.OPENCL, SCALE, before))


@pytest.mark.parametrize("macro", PROBES[: -len(FILE_PROBES)])
@pytest.mark.parametrize(
    "before",
    [
        "",
        "#define WHERE {0}",
        "#define J(a, b) a##b\n#define WHERE J(__{1}, __)",
        "#define Q(a) #a\n#define R(a) Q(a)",
    ],
    ids=["plain", "by a macro", "pasted", "quoted"],
)
def test_it_is_known_that_a_source_tells_where_it_is_compiled(
    pool: CompilePool, opencl_info: DeviceInfo, macro: str, before: str
) -> None:
    used = f"R({macro})" if "Q(a)" in before else "WHERE" if before else macro
    text = source(Backend.OPENCL, f"y[i] = sizeof({used});", before.format(macro, macro[2:-2]))
    assert built(pool, opencl_info, text).telling == (macro,)


@pytest.mark.parametrize("macro", ["__LINE__", "__COUNTER__", "__INCLUDE_LEVEL__"])
def test_a_condition_tells_as_well(pool: CompilePool, opencl_info: DeviceInfo, macro: str) -> None:
    now = "3" if macro == "__LINE__" else "0"
    text = source(Backend.OPENCL, SCALE, f"\n\n#if {macro} != {now}\n#define OTHER 1\n#endif")
    assert built(pool, opencl_info, text).telling == (macro,)


@pytest.mark.parametrize("macro", ["__LINE__", "__COUNTER__", "__INCLUDE_LEVEL__"])
@pytest.mark.parametrize("condition", ["#if 0\n#if {} > 9\n#endif", "#if 0 && {0} > 9", "#if {0} < 0"])
def test_a_condition_without_effect_tells_nothing(
    pool: CompilePool, opencl_info: DeviceInfo, macro: str, condition: str
) -> None:
    text = source(Backend.OPENCL, SCALE, f"{condition.format(macro)}\n#define OTHER 1\n#endif")
    assert built(pool, opencl_info, text).telling == ()


def test_the_timed_build_has_no_words_of_the_service(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    """Its numbers begin where they begin for everybody."""
    text = source(
        Backend.OPENCL, SCALE, "#if __LINE__ != 1 || __COUNTER__ || __INCLUDE_LEVEL__\n#error\n#endif"
    )
    assert set(built(pool, opencl_info, text).telling) == {"__LINE__", "__COUNTER__", "__INCLUDE_LEVEL__"}


def test_a_telling_macro_stays_what_it_is(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    """Whether it is defined, and that it is no number, is the same as everywhere."""
    built(pool, opencl_info, source(Backend.OPENCL, SCALE, "#ifndef __FILE__\n#error absent\n#endif"))
    text = source(Backend.OPENCL, SCALE, "#if __DATE__ == 0\n#endif")
    assert "preprocessor" in rejected(pool, opencl_info, text).reason


@pytest.mark.parametrize(
    "asked",
    [
        '#if __has_include("/usr/bin/env")\n#endif',
        '#define HAS __has_include\n#if HAS("/usr/bin/env")\n#endif',
        '#define J(a, b) a##b\n#if J(__has_, include)("/usr/bin/env")\n#endif',
        '#pragma pop_macro("__has_include")\n#if __has_include("/usr/bin/env")\n#endif',
        "#if __has_include_next(<stdio.h>)\n#endif",
    ],
)
def test_a_source_cannot_ask_for_files(pool: CompilePool, opencl_info: DeviceInfo, asked: str) -> None:
    """The reason is the same whether there is such a file or not, and whatever the source makes of it."""
    reasons = {
        rejected(pool, opencl_info, source(Backend.OPENCL, SCALE, text)).reason
        for text in (asked, asked.replace("env", "no_such_file"), asked.replace("#endif", "#error\n#endif"))
    }
    assert len(reasons) == 1
    assert "says which files the machine has" in reasons.pop()


@pytest.mark.parametrize(
    "guarded",
    [
        "#ifndef __has_include\n#error absent\n#endif",
        '#if 0 && defined(A)\n#if __has_include("b")\n#endif\n#endif',
    ],
)
def test_that_it_could_ask_is_no_offence(pool: CompilePool, opencl_info: DeviceInfo, guarded: str) -> None:
    built(pool, opencl_info, source(Backend.OPENCL, SCALE, guarded))


def test_the_service_sets_no_macro_that_a_source_can_see(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    for word in ("asm", "__asm", "__asm__"):
        text = source(Backend.OPENCL, SCALE, f"#ifdef {word}\n#error here\n#endif")
        built(pool, opencl_info, text)


def test_lines_of_messages_are_those_of_the_source(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    text = source(Backend.OPENCL, "y[i] = no_such_thing;")
    line = 1 + text[: text.index("no_such_thing")].count("\n")
    assert f"kernel.cl:{line}:" in rejected(pool, opencl_info, text).reason


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A shared object of an honest kernel with a constant table."""
    folder = tmp_path_factory.mktemp("honest")
    table = "__constant int bytes[72] = {7, 1, 4};"
    assert made_of(source(Backend.OPENCL, READS, table), folder) == (COMPILED, "")
    return objects_in(folder)[0]


SECTION = struct.Struct("<IIQQQQIIQQ")
SEGMENT = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")


def _sections(binary: bytes) -> dict[str, int]:
    """Places of the headers of sections by name."""
    at, size, count, names = (
        struct.unpack_from("<Q", binary, 40)[0],
        *struct.unpack_from("<HHH", binary, 58),
    )
    texts = SECTION.unpack_from(binary, at + names * size)[4]
    found = {}
    for place in range(at, at + count * size, size):
        name = texts + SECTION.unpack_from(binary, place)[0]
        found[binary[name : binary.index(b"\0", name)].decode()] = place
    return found


def _with_flags(binary: bytes, name: str, flags: int) -> bytes:
    place = _sections(binary)[name]
    return binary[: place + 8] + struct.pack("<Q", flags) + binary[place + 16 :]


def _with_symbol(binary: bytes, kind: int, **fields: int) -> bytes:
    """The last symbol of the object, a function, changed."""
    row = SECTION.unpack_from(binary, _sections(binary)[".symtab"])
    at = row[4] + row[5] - SYMBOL.size
    name, _, other, section, address, size = SYMBOL.unpack_from(binary, at)
    made = SYMBOL.pack(name, kind, other, fields.get("section", section), address, fields.get("size", size))
    return binary[:at] + made + binary[at + SYMBOL.size :]


def _with_tag(binary: bytes, tag: int) -> bytes:
    at = SECTION.unpack_from(binary, _sections(binary)[".dynamic"])[4]
    return binary[:at] + struct.pack("<q", tag) + binary[at + 8 :]


def _with_segment(binary: bytes, kind: int, flags: int, *, becomes: int | None = None) -> bytes:
    at, size, count = struct.unpack_from("<Q", binary, 32)[0], *struct.unpack_from("<HH", binary, 54)
    place = next(p for p in range(at, at + size * count, size) if SEGMENT.unpack_from(binary, p)[0] == kind)
    made = struct.pack("<II", kind if becomes is None else becomes, flags)
    return binary[:place] + made + binary[place + 8 :]


def test_an_honest_object_is_loaded(honest: bytes) -> None:
    assert inspect(honest).problem == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b[:200], "cannot be read"),
        (lambda b: b"MZ" + b[2:], "cannot be read"),
        (lambda b: b[:16] + b"\2" + b[17:], "no shared object"),
        (lambda b: b[:18] + b"\3" + b[19:], "of this machine"),
        (lambda b: _with_flags(b, ".rodata", 3), ".rodata is not constant"),
        (lambda b: _with_flags(b, ".rodata", 6), ".rodata is not constant"),
        (lambda b: _with_flags(b, ".text", 7), ".text can be written"),
        (lambda b: _with_flags(b, ".comment", 6), "no kernel needs: .comment"),
        (lambda b: _with_symbol(b, 0x1A), "chosen while loading"),
        (lambda b: _with_symbol(b, 0x16), "thread-local"),
        (lambda b: _with_symbol(b, 0x22), "weak"),
        (lambda b: _with_symbol(b, 0x11), "is data among code"),
        (lambda b: _with_symbol(b, 0x12, section=0), "not of the kernel's language"),
        (lambda b: _with_tag(b, 12), "more than tables"),
        (lambda b: _with_tag(b, 25), "more than tables"),
        (lambda b: _with_tag(b, 22), "more than tables"),
        (lambda b: _with_segment(b, 1, 7), "written and executed"),
        (lambda b: _with_segment(b, 0x6474E551, 7), "a stack that can be executed"),
        (lambda b: _with_segment(b, 0x6474E551, 6, becomes=7), "thread-local"),
    ],
)
def test_a_changed_object_is_refused(honest: bytes, change: object, words: str) -> None:
    assert callable(change)
    assert words in inspect(change(honest)).problem


def test_code_that_belongs_to_no_function_is_refused(honest: bytes) -> None:
    """A function is made one byte shorter, in both tables."""
    made = honest
    for table in (".symtab", ".dynsym"):
        row = SECTION.unpack_from(made, _sections(made)[table])
        for at in range(row[4], row[4] + row[5], SYMBOL.size):
            fields = list(SYMBOL.unpack_from(made, at))
            if fields[1] & 15 == 2:
                fields[5] //= 2
                made = made[:at] + SYMBOL.pack(*fields) + made[at + SYMBOL.size :]
    assert "belong to no function" in inspect(made).problem


@pytest.mark.parametrize(
    ("body", "before", "words"),
    [
        ("y[i] = x[i] * (__LINE__ < 40);", "", {"__LINE__"}),
        ("y[i] = x[i] * (__TIME__[0] != '9');", "", {"__TIME__"}),
        ("y[i] = x[i] * (J(__FI, LE__)[0] == 'k');", "#define J(a, b) a##b", {"__FILE__"}),
        (SCALE, '#if __has_include("/usr/bin/env")\n#endif', {"__has_include"}),
        (f"assert(n > 0); {SCALE}", "#include <cassert>", set()),
        (SCALE, "#if 0\n#define WHEN __DATE__\n#endif", set()),
    ],
)
def test_cuda_sources_are_compiled_at_other_places(
    pool: CompilePool, body: str, before: str, words: set[str]
) -> None:
    """In the confined child, where no file of the machine can be read; for a kernel that may be published."""
    asked = kernel(Backend.CUDA, source(Backend.CUDA, body, before))
    tried = pool.submit(asked, CUDA_DEVICE).result(HANGS_S)
    won = pool.submit(asked.model_copy(update={"tells_words": True}), CUDA_DEVICE).result(HANGS_S)
    assert isinstance(tried, Compiled)
    assert isinstance(won, Compiled)
    assert tried.telling == ()
    assert set(won.telling) == words
    assert won.binary == tried.binary
