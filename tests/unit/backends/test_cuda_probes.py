"""Words that tell where a CUDA source is compiled, in this process."""

import shutil
from pathlib import Path

import pytest

from warpsmith.backends.base import CompileRequest
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.backends.cuda.environment_probes import SitePtx, effective_probes
from warpsmith.backends.probes import nvrtc_sites
from warpsmith.backends.probes.compile_sites import PROBES, CompileSite, without_site
from warpsmith.backends.probes.text_filter import included, may_probe
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.source_text import code_of

SCALE = "y[i] = 2.0f * x[i];"
ASSERT = "#include <cassert>"
PASTES = "#define J2(a, b) a##b\n#define J(a, b) J2(a, b)\n#define Q2(a) #a\n#define Q(a) Q2(a)"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers and included sources lie where the child stands."""
    monkeypatch.chdir(tmp_path)


def _source(body: str, before: str = "") -> str:
    head = 'extern "C" __global__ void f(const float* x, float* y, const int n) {\n'
    return f"{before}\n{head}  const int i = threadIdx.x;\n  {body}\n}}\n"


def _compiled(
    source: str,
    headers: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    entry: str = "f",
    compiler: str = "nvrtc",
) -> Compiled:
    folder = Path("headers").resolve()
    folder.mkdir(exist_ok=True)
    for name, text in (headers or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    texts = tuple((headers or {}).values())
    request = CompileRequest(
        *(Backend.CUDA, source, entry, options, (folder,), compiler, "sm_90", 0),
        headers=texts,
        tells_words=True,
    )
    result = compile_cuda(request)
    assert isinstance(result, Compiled), f"{result.reason}\n{result.log}"
    return result


def _telling(body: str, before: str = "", headers: dict[str, str] | None = None) -> tuple[str, ...]:
    return _compiled(_source(body, before), headers).telling


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("y[i] = __LINE__;", "__LINE__"),
        ("y[i] = __LINE__ < 40;", "__LINE__"),
        ("y[i] = __LINE__ > 3;", "__LINE__"),
        ("y[i] = __LINE__ & 1;", "__LINE__"),
        ("y[i] = __builtin_LINE() < 40;", "__LINE__"),
        ("static_assert(__LINE__ < 40); y[i] = 1;", "__LINE__"),
        ("if constexpr (__LINE__ > 3) y[i] = 1;", "__LINE__"),
        ("y[i] = __TIME__[7];", "__TIME__"),
        ("y[i] = __TIME__[7] == '5';", "__TIME__"),
        ("constexpr char hour = __TIME__[0]; if constexpr (hour < '3') y[i] = 1;", "__TIME__"),
        ("y[i] = __DATE__[9] >= '2';", "__DATE__"),
        ("y[i] = __FILE__[1] == 'e';", "__FILE__"),
        ("y[i] = sizeof(__FILE__) < 26;", "__FILE__"),
        ("y[i] = __builtin_FILE()[0] != '/';", "__FILE__"),
        ("y[i] = __BASE_FILE__[1] == 'e';", "__FILE__"),
        ("y[i] = __INCLUDE_LEVEL__ == 0;", "__INCLUDE_LEVEL__"),
    ],
)
def test_a_word_that_counts_is_told(body: str, word: str) -> None:
    assert _telling(body) == (word,)


@pytest.mark.parametrize(
    ("body", "before", "word"),
    [
        ("y[i] = J(__LI, NE__) < 40;", PASTES, "__LINE__"),
        ("y[i] = J(J(_, _FI), LE__)[1] == 'e';", PASTES, "__FILE__"),
        ("y[i] = Q(J(__DA, TE__))[10] >= '2';", PASTES, "__DATE__"),
        ("y[i] = __FI\\\nLE__[0] == 'k';", "", "__FILE__"),
        ("y[i] = T<__LINE__>();", "template <int N> __device__ float T() { return N > 40; }", "__LINE__"),
        (f"K {SCALE}", "#if __LINE__ > 1\n#define K y[0] = 1;\n#else\n#define K\n#endif", "__LINE__"),
        ("y[i] = __LINE__ > 3;", "#if 0\n don't (\n#endif", "__LINE__"),
        ("y[i] = line() < 40;", '#line 2 "a.cu"\n__device__ int line() { return __LINE__; }', "__LINE__"),
        (
            "y[i] = cuda::std::source_location::current().line() < 40;",
            "#include <cuda/std/source_location>",
            "__LINE__",
        ),
        ("y[i] = _CCCL_PP_CAT(__LI, NE__) < 40;", "#include <cuda/std/type_traits>", "__LINE__"),
    ],
    ids=["pasted", "in three", "quoted", "spliced", "template", "if", "odd", "line", "location", "toolkit"],
)
def test_no_form_hides_a_word(body: str, before: str, word: str) -> None:
    if before.startswith("#line"):
        # A source that numbers its own lines is the same everywhere.
        assert _telling(body, before) == ()
    else:
        assert _telling(body, before) == (word,)


def test_a_header_of_the_job_can_bring_a_word() -> None:
    headers = {"where.h": "#define WHERE (__LINE__ < 40)\n"}
    assert _telling("y[i] = WHERE;", '#include "where.h"', headers) == ("__LINE__",)
    assert _telling(SCALE, '#include "where.h"', headers) == ()


def test_both_of_two_words_are_told() -> None:
    words = _telling("y[i] = sizeof(Q(assert(n)));", f"{PASTES}\n{ASSERT}")
    assert set(words) == {"__FILE__", "__LINE__"}


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (SCALE, "// __LINE__ of __FILE__"),
        (SCALE, "#if 0\n#define A __TIME__\n don't (\n#endif"),
        (SCALE, '#define CHECK(x) ((x) ? 0 : printf("%s:%d", __FILE__, __LINE__))'),
        (f"assert(n > 0); {SCALE}", ASSERT),
        (f"assert(n > 0);\n  assert(i < 9);\n  assert(i < 9);\n  {SCALE}", ASSERT),
        (f'const char* text = "__LINE__"; {SCALE} y[0] = text[i];', ""),
        (f"{SCALE} atomicAdd(&kept, inner);", f"{PASTES}\nstatic __device__ int J(ke, pt);\n"
         "namespace { __device__ int inner; }"),
        (SCALE, "#if !defined(__FILE__) || !defined(__has_include)\n#error\n#endif"),
        ("y[i] = sizeof(J(wi, de)(x[i],\n    2.0f));", f"{PASTES}\n__device__ float wide(float a, float) "
         "{ return a; }"),
        (SCALE, "#if __has_include(<cuda_fp16.h>)\n#include <cuda_fp16.h>\n#endif"),
    ],
    ids=["comment", "inactive", "macro", "assert", "asserts", "string", "static", "defined", "lines", "has"],
)  # fmt: skip
def test_a_word_without_effect_is_not_told(body: str, before: str) -> None:
    assert may_probe([_source(body, before)]), "not the words, but their effect is looked at"
    assert _telling(body, before) == ()


def test_an_assertion_in_a_header_tells_nothing_and_a_line_beside_one_does() -> None:
    headers = {"ok.h": f"{ASSERT}\ninline __device__ void ok(int i) {{ assert(i > 3); }}\n"}
    assert _telling(f"ok(i); {SCALE}", '#include "ok.h"', headers) == ()
    assert _telling("assert(n > 0); y[i] = __LINE__ < 9;", ASSERT) == ("__LINE__",)


def test_line_tables_tell_nothing() -> None:
    text = _source(f"assert(n > 0); {SCALE}", ASSERT)
    assert _compiled(text, options=("-lineinfo",)).telling == ()
    assert _compiled(_source("y[i] = __LINE__;"), options=("-lineinfo",)).telling == ("__LINE__",)


def test_templates_are_looked_at_as_well() -> None:
    text = "template <int N> __global__ void g(float* y) { y[threadIdx.x] = N * (__LINE__ < 9); }"
    assert _compiled(text, entry="g<3>").telling == ("__LINE__",)
    assert _compiled(text.replace("(__LINE__ < 9)", "1 /* __LINE__ */"), entry="g<3>").telling == ()


@pytest.mark.parametrize(
    "asked",
    [
        '__has_include("/usr/bin/env")',
        "__has_include(</usr/bin/env>)",
        '__has_include("../../../../../usr/bin/env")',
        '__has_include("nowhere.h")',
        'J(__has_, include)("/usr/bin/env")',
        'J(__has_, include)("/usr/bin/nowhere")',
    ],
)
def test_who_asks_for_files_of_the_machine_is_told(asked: str) -> None:
    """Whether they are there or not."""
    assert _telling(SCALE, f"{PASTES}\n#if {asked}\n#endif") == ("__has_include",)
    assert _telling(SCALE, f"{PASTES}\n#if 0\n#if {asked}\n#endif\n#endif") == ()


def test_a_question_for_own_headers_is_none() -> None:
    headers = {"sub/a.h": '#include "b.h"\n', "b.h": ""}
    before = f'{PASTES}\n#if __has_include("sub/a.h")\n#include "sub/a.h"\n#endif'
    assert _telling(SCALE, before, headers) == ()


def test_where_nvrtc_cannot_be_watched_the_text_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc_sites, "redirect", lambda *_: 0)
    assert set(_telling(SCALE, "// __DATE__")) == {"__DATE__"}
    assert _telling(SCALE, "// __LINE__") == ()
    assert _telling(SCALE, "#if __has_include(<cuda_fp16.h>)\n#endif") == ("__has_include",)


def test_the_timed_build_is_what_it_was() -> None:
    """Its lines begin where they begin for everybody, and it has no macro of the service."""
    text = _source(SCALE, '#if __LINE__ != 1 || __INCLUDE_LEVEL__\n#error\n#endif\n#line 2 "kernel.cu"')
    assert set(_compiled(text).telling) == {"__LINE__", "__INCLUDE_LEVEL__"}
    assert not list(Path().glob("*.cu"))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
@pytest.mark.parametrize(
    ("body", "before", "words"),
    [
        (f"assert(n > 0); {SCALE} y[1] = kept;", f"{ASSERT}\nstatic __device__ int kept;", ()),
        (SCALE, "#if 0\n#define A __TIME__\n#endif\nvoid host() {}", ()),
        ("y[i] = __LINE__ < 40;", "", ("__LINE__",)),
        ("y[i] = __TIME__[7];", "", ("__TIME__",)),
        ("y[i] = __BASE_FILE__[1] == 'e';", "", ("__FILE__",)),
        ("y[i] = __TIMESTAMP__[7] == '5';", "", ("__TIMESTAMP__",)),
        ("y[i] = __COUNTER__ == 0;", "", ("__COUNTER__",)),
        (SCALE, '#if __has_include("/usr/bin/env")\n#endif', ("__has_include",)),
    ],
)
def test_nvcc_is_asked_as_well(body: str, before: str, words: tuple[str, ...]) -> None:
    assert _compiled(_source(body, before), compiler="nvcc").telling == words


@pytest.mark.parametrize(
    "text",
    ["int a##b;", "__LI\\\nNE__", "??=", "%:%:", "x = '\\u005f'", "CubDebug(e)", "_CCCL_ASSERT(a, b)"],
)
def test_the_filter_lets_through_what_could_make_a_word(text: str) -> None:
    assert may_probe([text])


def test_the_filter_keeps_back_what_could_not() -> None:
    kernel = code_of(_source(SCALE, "#include <cuda_fp16.h>\n#define TILE 4\n#pragma unroll 2"))
    assert not may_probe([kernel, "-DN=3", "CUB_NS __syncthreads __launch_bounds__ __builtin_assume"])


def test_included_files_are_named() -> None:
    text = '#include <a/b.h>\n# include "c.h"\n#include WHICH\n#inc\\\nlude <d.h>'
    assert included([text]) == ("a/b.h", "c.h", "", "d.h")


def test_where_only_all_words_together_count_all_are_told() -> None:
    def look(place: CompileSite) -> "object":
        return lambda: SitePtx("other" if len(place.words) > 1 else "same")

    assert effective_probes("same", look) == PROBES  # type: ignore[arg-type]
    assert effective_probes("same", lambda _: lambda: SitePtx("same")) == ()
    assert effective_probes(None, lambda _: lambda: SitePtx(None)) == PROBES


def test_of_an_assertion_only_its_place_is_left_out() -> None:
    """A register or text that the kernel goes on with is compared."""
    call = (
        "{\n\tmov.u64 \t%rd1, $str;\n\tcvta.global.u64 \t%rd2, %rd1;\n\t{ // callseq 0, 0\n"
        "\t.param .b64 param1;\n\tst.param.b64 \t[param1+0], %rd2;\n\t.param .b32 param2;\n"
        "\tst.param.b32 \t[param2+0], LINE;\n\tcall.uni \n\t__assertfail, \n\t(\n\tparam1, \n\tparam2\n\t);\n"
        "\t} // callseq 0\n}\n"
    )
    text = ".global .align 1 .b8 $str[2] = {65};\n"
    place = CompileSite()

    def made(line: str, name: str, more: str = "") -> str:
        ptx = text.replace("65", name) + call.replace("LINE", line)
        return without_site(ptx.replace("\n}\n", f"\n{more}}}\n"), place)

    assert made("3", "65") == made("12", "66")
    for more in ("\tld.global.u8 \t%r1, [$str];\n", "\tld.u8 \t%r1, [%rd2];\n", "\tld.u8 \t%r1, [%rd1];\n"):
        assert made("3", "65", more) != made("3", "66", more)
    other = call.replace("\tcall.uni", "\tld.param.b32 \t%r1, [param2+0];\n\tcall.uni")
    assert without_site(text + other.replace("LINE", "3"), place) != without_site(
        text + other.replace("LINE", "4"), place
    )
