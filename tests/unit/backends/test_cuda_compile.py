"""CUDA sources to cubins for sm_90, with NVRTC, and with nvcc where it is installed."""

import shutil
from pathlib import Path

import pytest

from testbed.example_jobs import FAMILIES, load_example
from warpsmith.backends.base import CompileRequest, CompileWay, RefusedEveryWay
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.backends.cuda import compile as cuda_compile
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.backends.cuda.nvrtc import compile_nvrtc
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage

COMPILERS = ("nvrtc", "nvcc") if shutil.which("nvcc") else ("nvrtc",)
TEMPLATED = """
namespace ns {
template <typename T, int N> __global__ void scale(T* p) { p[threadIdx.x] = p[threadIdx.x] * T(N); }
__global__ void plain(float* p) { p[0] = 1.0f; }
}
"""
USES_SHARED = """
extern "C" __global__ void f(float* p) {
  __shared__ float tile[1000];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[999 - threadIdx.x];
}
"""
SPILLS = """
extern "C" __global__ void f(float* p) {
  float v[200];
  #pragma unroll
  for (int i = 0; i < 200; i++) v[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 200; i++) p[(199 - i) * 1024 + threadIdx.x] = v[i] * v[(i * 7) % 200];
}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc leaves its files where the child stands."""
    monkeypatch.chdir(tmp_path)


def _compile(
    source: str,
    entry: str,
    compiler: str = "nvrtc",
    options: tuple[str, ...] = (),
    include_dirs: tuple[Path, ...] = (),
    architecture: str = "sm_90",
) -> Compiled | Rejected:
    return compile_cuda(
        CompileRequest(Backend.CUDA, source, entry, options, include_dirs, compiler, architecture, 0)
    )


def _good(
    source: str,
    entry: str,
    compiler: str = "nvrtc",
    options: tuple[str, ...] = (),
    include_dirs: tuple[Path, ...] = (),
) -> Compiled:
    result = _compile(source, entry, compiler, options, include_dirs)
    assert isinstance(result, Compiled), f"{result.reason}\n{result.log}"
    return result


def _bad(
    source: str,
    entry: str,
    compiler: str = "nvrtc",
    options: tuple[str, ...] = (),
    architecture: str = "sm_90",
) -> Rejected:
    result = _compile(source, entry, compiler, options, architecture=architecture)
    assert isinstance(result, Rejected)
    assert result.stage is Stage.COMPILE
    return result


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_example_compiles_with_its_resources(family: str, compiler: str) -> None:
    kernel = load_example(family, "cuda").kernel
    result = _good(kernel.text, kernel.entry, compiler, kernel.options)
    assert result.entry in read_cubin(result.binary).entries
    assert result.facts.registers is not None
    assert 4 <= result.facts.registers <= 255
    assert result.facts.spill_bytes == 0
    assert "Used" in result.log


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("ns::scale<float, 3>", ("scale", "f", "Li3E")),
        ("ns::scale<int,7>", ("scale", "i", "Li7E")),
        ("ns::scale< double , 2 + 3 >", ("scale", "d", "Li5E")),
        ("ns::plain", ("2ns5plain",)),
    ],
)
def test_name_expressions_become_symbols(compiler: str, entry: str, parts: tuple[str, ...]) -> None:
    result = _good(TEMPLATED, entry, compiler)
    assert result.entry in read_cubin(result.binary).entries
    assert all(part in result.entry for part in parts)


SEVERAL = """
namespace ns {
enum class Order : unsigned { kBig = 0, kLittle = 1 };
enum Plain { A, B };
template <Order O, typename T, Plain P = A> __global__ void pack(T* p) { p[0] = T(int(O) + P); }
template <Order O> __global__ void packs(int* p) { p[0] = int(O); }
void launch(int* i, float* f) {
  pack<Order::kBig><<<1, 1>>>(i); pack<Order::kLittle><<<1, 1>>>(i);
  pack<Order::kLittle, float, B><<<1, 1>>>(f);
  packs<Order::kBig><<<1, 1>>>(i);
}
}
"""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("entry", "end"),
    [
        ("ns::pack<static_cast<ns::Order>(0), int>", "4packILNS_5OrderE0EiLNS_5PlainE0EEEvPT0_"),
        ("ns::pack<(ns::Order)1, int>", "4packILNS_5OrderE1EiLNS_5PlainE0EEEvPT0_"),
        ("ns::pack<ns::Order::kLittle, float, ns::B>", "4packILNS_5OrderE1EfLNS_5PlainE1EEEvPT0_"),
        ("ns::pack<ns::Order{1}, double>", "4packILNS_5OrderE1EdLNS_5PlainE0EEEvPT0_"),
        ("ns::packs<ns::Order::kLittle>", "5packsILNS_5OrderE1EEEvPi"),
    ],
)
def test_of_several_instances_the_one_that_is_named_is_taken(compiler: str, entry: str, end: str) -> None:
    # Host code of a header instantiates templates too; NVRTC compiles none.
    source = SEVERAL if compiler == "nvcc" else SEVERAL[: SEVERAL.index("void launch")] + "}"
    result = _good(source, entry, compiler)
    assert result.entry == f"_ZN2ns{end}"
    assert result.entry in read_cubin(result.binary).entries


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "source",
    [
        'extern "C" __global__ void f(int* p) { *p = 1; }',
        'extern "C" { __global__ void f(int* p) { *p = 1; } }',
    ],
)
def test_a_c_function_keeps_its_name(compiler: str, source: str) -> None:
    assert _good(source, "f", compiler).entry == "f"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_cxx_function_is_found_by_its_plain_name(compiler: str) -> None:
    result = _good("__global__ void f(int* p) { *p = 1; }", "f", compiler)
    assert result.entry == "_Z1fPi"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_shared_memory_and_spills_are_read(compiler: str) -> None:
    assert _good(USES_SHARED, "f", compiler).facts.static_shared_bytes == 4000
    facts = _good(SPILLS, "f", compiler, ("-maxrregcount=32",)).facts
    assert facts.registers == 32
    assert facts.spill_bytes is not None
    assert facts.spill_bytes > 100
    assert facts.local_bytes is not None
    assert facts.local_bytes > 100
    assert _good(USES_SHARED, "f", compiler).facts.spill_bytes == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_resources_are_those_of_the_entry_and_not_of_its_neighbour(compiler: str) -> None:
    neighbours = USES_SHARED + 'extern "C" __global__ void g(float* p) { p[0] = 1.0f; }\n'
    assert _good(neighbours, "f", compiler).facts.static_shared_bytes == 4000
    assert _good(neighbours, "g", compiler).facts.static_shared_bytes == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_error_brings_the_compilers_log(compiler: str) -> None:
    result = _bad('extern "C" __global__ void f(int* p) { *p = no_such_thing; }', "f", compiler)
    assert "no_such_thing" in result.reason
    assert "no_such_thing" in result.log
    assert "kernel.cu" in result.log


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "entry", ["missing", "ns::missing<float>", "ns::scale<float>", "ns::scale<float, 3", ";"]
)
def test_a_missing_or_malformed_entry_is_a_rejection(compiler: str, entry: str) -> None:
    assert _bad(TEMPLATED, entry, compiler).reason


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_entry_that_is_no_kernel_is_a_rejection(compiler: str) -> None:
    source = '__device__ int g(int v) { return v; }\nextern "C" __global__ void f(int* p) { *p = g(*p); }'
    assert _bad(source, "g", compiler).reason


@pytest.mark.parametrize("compiler", COMPILERS)
def test_long_logs_are_cut(compiler: str) -> None:
    names = "".join(f"int a{k} = undeclared_{k}_{'x' * 200};\n" for k in range(300))
    result = _bad(f'extern "C" __global__ void f(int* p) {{ {names} }}', "f", compiler)
    assert 1000 < len(result.log) <= MAX_LOG_CHARACTERS
    assert len(result.reason) <= 500


@pytest.mark.parametrize("compiler", COMPILERS)
def test_toolkit_headers_and_permitted_folders_are_found(compiler: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own.cuh").write_text("__device__ inline float twice(float v) { return 2 * v; }\n")
    headers = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cooperative_groups.h>\n"
    headers += '#include <cuda/std/type_traits>\n#include "own.cuh"\n'
    body = "p[0] = __float2half(twice(__half2float(p[1])));"
    source = f'{headers}extern "C" __global__ void f(__half* p) {{ {body} }}'
    _good(source, "f", compiler, (), (tmp_path / "own",))
    assert "own.cuh" in _bad(source, "f", compiler).log


@pytest.mark.parametrize("compiler", COMPILERS)
def test_options_off_the_list_are_refused_before_any_compiler_runs(compiler: str) -> None:
    source = 'extern "C" __global__ void f(int* p) { *p = 1; }'
    for option in (
        "-Xcompiler=-fplugin=x",
        "-ccbin=/tmp/x",
        "--include-path=/etc",
        "-rdc=true",
        "--dlink-time-opt",
    ):
        assert "not allowed" in _bad(source, "f", compiler, (option,)).reason


@pytest.mark.parametrize("compiler", COMPILERS)
def test_options_on_the_list_take_effect(compiler: str) -> None:
    source = 'extern "C" __global__ void f(float* p) { p[0] = __expf(p[1]) / VALUE; }'
    fast = _good(source, "f", compiler, ("--use_fast_math", "-DVALUE=3.5f", "-lineinfo"))
    assert fast.facts.registers is not None
    assert "VALUE" in _bad(source, "f", compiler).log
    newer = "template <typename T> requires (sizeof(T) == 4) __device__ T same(T v) { return v; }\n"
    newer += 'extern "C" __global__ void f(int* p) { *p = same(1); }'
    _good(newer, "f", compiler, ("-std=c++20",))
    _bad(newer, "f", compiler)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_launch_from_the_device_is_refused(compiler: str) -> None:
    source = "__global__ void g(int* p) { *p = 1; }\n"
    source += 'extern "C" __global__ void f(int* p) { g<<<1, 1>>>(p); }'
    assert _bad(source, "f", compiler).log


def test_an_unknown_architecture_is_a_rejection() -> None:
    assert "architecture" in _bad('extern "C" __global__ void f() {}', "f", architecture="sm_1").reason


FOR_A_HOST = {
    "a header that only a host has": ("#include <regex>\n", "regex"),
    "a function of its own": ("int half(int v) { return v / 2; }\n", "host functions are not allowed"),
}


@pytest.mark.parametrize("name", list(FOR_A_HOST))
def test_what_nvrtc_cannot_read_takes_nvcc_where_there_is_one(name: str) -> None:
    text, word = FOR_A_HOST[name]
    source = text + "namespace a { template <int N> __global__ void f(int* p) { *p = N; } }"
    if "nvcc" in COMPILERS:
        assert "Li4E" in _good(source, "a::f<4>", "auto").entry
    else:
        refused = _bad(source, "a::f<4>", "auto")
        assert word in refused.reason
        assert "no nvcc (`compiler: nvcc`)" in refused.reason
    refused = _bad(source, "a::f<4>", "nvrtc")
    assert word in refused.reason
    assert "`compiler: nvcc`" in refused.reason


def test_without_nvcc_the_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("compile", "nvcc"):
        monkeypatch.setattr(f"warpsmith.backends.cuda.{module}.find_nvcc", lambda: None)
    source = 'extern "C" __global__ void f(int* p) { *p = 1; }'
    assert "none" in _bad(source, "f", "nvcc").reason
    _good(source, "f", "auto")
    reason = _bad("#include <regex>\n" + source, "f", "auto").reason
    assert reason.startswith('kernel.cu(1): catastrophic error: cannot open source file "regex"')
    assert "this worker has no nvcc (`compiler: nvcc`)" in reason


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The compilers that were asked, one after another; nvcc refuses everything."""
    asked: list[str] = []
    nvrtc = compile_nvrtc

    def first(request: CompileRequest, way: CompileWay) -> object:
        asked.append(way.value)
        return nvrtc(request, way)

    def second(request: CompileRequest) -> Rejected:
        asked.append("nvcc")
        return Rejected(stage=Stage.COMPILE, reason="nvcc says no", log="its log")

    monkeypatch.setattr(cuda_compile, "compile_nvrtc", first)
    monkeypatch.setattr(cuda_compile, "compile_nvcc", second)
    monkeypatch.setattr(cuda_compile, "find_nvcc", lambda: Path("nvcc"))
    return asked


def test_what_both_compilers_refuse_has_the_words_of_both(asked: list[str]) -> None:
    refused = _bad("#include <regex>\n" + USES_SHARED, "f", "auto")
    assert isinstance(refused, RefusedEveryWay)
    assert refused.reason == "nvcc says no"
    assert refused.log.startswith("its log")
    assert 'NVRTC: kernel.cu(1): catastrophic error: cannot open source file "regex"' in refused.log
    assert asked == ["nvrtc", "nvrtc-ordinary", "nvcc"]


def test_a_source_that_no_way_helped_before_is_compiled_in_one_way_only(asked: list[str]) -> None:
    source = "#include <regex>\n" + USES_SHARED
    request = CompileRequest(Backend.CUDA, source, "f", (), (), "auto", "sm_90", 0, may_fall_back=False)
    refused = compile_cuda(request)
    assert isinstance(refused, Rejected)
    assert "nvcc has not helped" in refused.reason
    assert asked == ["nvrtc"]


@pytest.mark.parametrize(
    "source",
    [
        USES_SHARED.replace("tile[1000]", "tile[100000]"),
        USES_SHARED.replace("__syncthreads();", 'asm volatile("no_such_instruction;");'),
    ],
)
def test_what_the_assembler_refuses_is_not_compiled_again(asked: list[str], source: str) -> None:
    assert "ptxas" in _bad(source, "f", "auto").log
    assert asked == ["nvrtc"]


def test_a_configuration_begins_with_the_way_that_another_needed(asked: list[str]) -> None:
    for way in ("nvrtc-ordinary", "nvrtc"):
        request = CompileRequest(Backend.CUDA, USES_SHARED, "f", (), (), "auto", "sm_90", 0, begin_with=way)
        result = compile_cuda(request)
        assert isinstance(result, Compiled)
        assert result.way == way
    assert asked == ["nvrtc-ordinary", "nvrtc"]
