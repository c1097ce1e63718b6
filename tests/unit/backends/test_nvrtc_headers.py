"""Our headers for NVRTC: ordinary text compiles, and means what it means to nvcc."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from warpsmith.backends.base import CompileRequest, CompileWay
from warpsmith.backends.cuda.compile import compile_cuda
from warpsmith.backends.cuda.nvrtc import HEADERS
from warpsmith.backends.cuda.toolkit import toolkit_includes
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="compares NVRTC with nvcc")
STANDARD = sorted(
    str(path.relative_to(HEADERS))
    for path in HEADERS.rglob("*")
    if path.is_file() and path.parent.name != "warpsmith"
)

STATEMENTS = (Path(__file__).parent / "statements.cu").read_text()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc leaves its files where the child stands."""
    monkeypatch.chdir(tmp_path)


def _compile(
    source: str,
    compiler: str = "nvrtc",
    options: tuple[str, ...] = (),
    include_dirs: tuple[Path, ...] = (),
    entry: str = "f",
) -> Compiled | Rejected:
    request = CompileRequest(Backend.CUDA, source, entry, options, include_dirs, compiler, "sm_90", 0)
    return compile_cuda(replace(request, has_other_headers=bool(include_dirs)))


def _good(*arguments: object, **options: object) -> Compiled:
    result = _compile(*arguments, **options)  # type: ignore[arg-type]
    assert isinstance(result, Compiled), f"{result.reason}\n{result.log}"
    return result


def _bad(*arguments: object, **options: object) -> Rejected:
    result = _compile(*arguments, **options)  # type: ignore[arg-type]
    assert isinstance(result, Rejected)
    return result


def _with_body(body: str, headers: str = "") -> str:
    return f'{headers}\nextern "C" __global__ void f(float* p) {{ {body} }}\n'


@pytest.mark.parametrize("compiler", ["nvrtc", pytest.param("nvcc", marks=needs_nvcc)])
def test_every_statement_holds_under_both_compilers(compiler: str) -> None:
    options = ("-std=c++20", "--expt-relaxed-constexpr")
    result = _compile(STATEMENTS, compiler, options)
    assert isinstance(result, Compiled), result.log[:3000]
    wrong = STATEMENTS.replace("std::gcd(12, 18) == 6", "std::gcd(12, 18) == 7")
    assert "gcd" in _bad(wrong, compiler, options).log


@pytest.mark.parametrize("name", STANDARD)
def test_every_header_compiles_by_itself(name: str) -> None:
    assert _good(_with_body("p[0] = 1.0f;", f"#include <{name}>\n")).way == CompileWay.NVRTC


@pytest.mark.parametrize("ours_first", [True, False])
def test_our_headers_go_together_with_those_of_cuda(ours_first: bool) -> None:
    cuda = ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_pipeline.h", "mma.h", "cooperative_groups.h")
    names = (*STANDARD, *cuda) if ours_first else (*cuda, *STANDARD)
    headers = "".join(f"#include <{name}>\n" for name in names)
    assert _good(_with_body("p[0] = 1.0f;", headers)).way == CompileWay.NVRTC


ORDINARY = {
    "int64_t": "int64_t n = int64_t(blockIdx.x) * blockDim.x; p[n] = 1.0f;",
    "INFINITY": "float m = -INFINITY; m = fmaxf(m, p[1]); p[0] = m;",
    "FLT_MAX": "p[0] = p[1] < INT_MAX ? p[1] : float(UINT_MAX);",
    "std::min": "p[0] = std::min(p[1], std::max(p[2], 0.0f));",
    "std::is_same": "if constexpr (std::is_same_v<decltype(p), float*>) p[0] = 1.0f;",
    "std::exp": "p[0] = std::exp(p[1]) + std::sqrt(std::abs(p[2]));",
}


@pytest.mark.parametrize("name", list(ORDINARY))
def test_what_nvcc_knows_without_an_include_is_known(name: str) -> None:
    result = _good(_with_body(ORDINARY[name]))
    assert result.way == CompileWay.NVRTC_ORDINARY
    # Another configuration of the source begins with the way that was found.
    again = CompileRequest(
        Backend.CUDA, _with_body(ORDINARY[name]), "f", (), (), "nvrtc", "sm_90", 0, begin_with=result.way
    )
    found = compile_cuda(again)
    assert isinstance(found, Compiled)
    assert (found.binary, found.way) == (result.binary, result.way)
    # Constants that our headers bring along are no variables of the kernel.
    assert set(result.globals) == set(result.unnamed)


def test_a_source_that_has_its_own_names_for_them_is_read_as_it_is() -> None:
    own = "typedef long int64_t;\n#define INFINITY 1e30f\n"
    own += "namespace std { template <class T> __device__ T min(T a, T b) { return a < b ? a : b; } }\n"
    assert _good(_with_body("p[int64_t(1)] = std::min(INFINITY, p[0]);", own)).way == CompileWay.NVRTC


def test_a_header_of_the_project_comes_before_ours(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "math.h").write_text("__device__ inline float own(float v) { return v; }\n")
    (own / "all.h").write_text('#include "math.h"\n')
    for include in ('"math.h"', "<math.h>", '"all.h"'):
        _good(_with_body("p[0] = own(p[1]);", f"#include {include}"), include_dirs=(own,))


HOST_CODE = """
#pragma once
#include <cuda_runtime.h>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>
namespace lib {
class Error : public std::exception {
 public:
  Error(const std::string& what, int line) {
    std::ostringstream text;
    text << what << " at " << line;
    what_ = text.str();
  }
  const char* what() const noexcept override { return what_.c_str(); }
 private:
  std::string what_;
};
inline bool is_loud() {
  static const bool loud = [] { return getenv("LOUD") != nullptr && std::atoi(getenv("LOUD")) > 0; }();
  return loud;
}
inline int processors() {
  struct Key { int device; };
  static std::map<Key, std::unique_ptr<Key>> kept;
  static std::map<int, int> known;
  static std::mutex guard;
  std::lock_guard<std::mutex> held(guard);
  int device = 0, found = 0;
  if (cudaGetDevice(&device) != cudaSuccess) throw std::runtime_error("no device");
  if (known.find(device) != known.end()) return known[device];
  cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device);
  return known[device] = found;
}
inline int files(const char* path) {
  struct stat found = {};
  if (stat(path, &found) == -1 && (errno != ENOENT || mkdir(path, 0700) == -1)) exit(EXIT_FAILURE);
  DIR* folder = opendir(path);
  while (struct dirent* entry = readdir(folder)) printf("%s\\n", entry->d_name);
  FILE* file = fopen(path, "rb");
  fseek(file, 0, SEEK_END);
  return fclose(file) + closedir(folder) + access(path, 0);
}
template <typename T> __global__ void twice(T* p) { p[threadIdx.x] *= T(2); }
template <typename T> cudaError_t launch(T* p, const std::vector<int>& sizes, cudaStream_t stream) {
  auto [blocks, threads] = std::make_tuple(processors(), int(sizes.size()));
  if (threads > 1024) throw Error("too many threads: " + std::to_string(threads), __LINE__);
  for (int size : sizes) std::cout << size << std::endl;
  cudaFuncSetAttribute(twice<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16);
  twice<T><<<blocks, threads, 0, stream>>>(p);
  void* arguments[] = {&p};
  cudaLaunchKernel((void*)twice<T>, blocks, threads, arguments, 0, stream);
  return cudaGetLastError();
}
inline void launch_floats(float* p) { twice<float><<<1, 32>>>(p); }
__host__ inline void check(float* p) { try { launch<float>(p, {1, 2}, nullptr); } catch (...) { abort(); } }
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "lib.cuh").write_text(HOST_CODE)
    return folder


@pytest.mark.parametrize("compiler", ["nvrtc", "auto", pytest.param("nvcc", marks=needs_nvcc)])
def test_a_header_with_host_functions_is_read(library: Path, compiler: str) -> None:
    result = _good('#include "lib.cuh"\n', compiler, (), (library,), "lib::twice<double>")
    assert "twiceId" in result.entry
    assert result.way == (CompileWay.NVCC if compiler == "nvcc" else CompileWay.NVRTC_HOST_CODE)


@pytest.mark.parametrize("compiler", ["nvrtc", "auto"])
@pytest.mark.parametrize(
    "body",
    [
        "lib::launch_floats(p);",
        "p[0] = lib::processors();",
        "p[0] = getpid();",
        'p[0] = lib::files("a");',
        "std::vector<float> v(3); p[0] = v[0];",
        'if (getenv("LOUD") != nullptr) p[0] = 1.0f;',
        "std::atomic<int> a(1); a.fetch_add(1);",
        "cudaDeviceSynchronize();",
        "if (p[0] > 1) throw 1;",
        "lib::twice<float><<<1, 1>>>(p);",
        'if (p[0] > 1) std::cout << "large";',
    ],
)
def test_a_kernel_that_uses_what_only_a_host_has_is_refused(library: Path, body: str, compiler: str) -> None:
    source = _with_body(body, '#include "lib.cuh"\n#include <atomic>')
    assert _bad(source, compiler, (), (library,)).reason


@pytest.mark.skipif(
    not any((folder / "nvtx3").is_dir() for folder in toolkit_includes()), reason="the toolkit has no NVTX"
)
def test_ranges_of_nvtx_in_a_header_are_read(tmp_path: Path) -> None:
    text = (
        "#include <nvtx3/nvToolsExt.h>\ninline void ranged() { nvtxRangePushA(__func__); nvtxRangePop(); }\n"
    )
    (tmp_path / "ranges.h").write_text(text)
    source = _with_body("p[0] = 1.0f;", '#include "ranges.h"')
    assert _good(source, include_dirs=(tmp_path,)).way == CompileWay.NVRTC_HOST_CODE
    _bad(_with_body("ranged();", '#include "ranges.h"'), include_dirs=(tmp_path,))


def test_host_functions_of_the_kernels_own_text_are_left_to_nvcc(library: Path) -> None:
    # Read as a device function, it would be accepted here and refused where the result is built.
    source = _with_body("p[0] = helper(p[1]);", '#include "lib.cuh"\nfloat helper(float v) { return v; }')
    assert _bad(source, "auto", (), (library,)).reason
    refused = _bad(source, "nvrtc", (), (library,))
    assert "host functions are not allowed" in refused.reason
    assert "`compiler: nvcc`" in refused.reason


def test_other_kernels_of_a_source_may_have_attributes() -> None:
    other = "__global__ void __launch_bounds__(128, (1 + 1)) other(float* p) { p[0] = 2.0f; }\n"
    assert _good(other + _with_body("p[0] = 1.0f;")).entry == "f"


def test_options_that_only_nvcc_has_do_not_stop_nvrtc() -> None:
    source = _with_body("p[0] = std::max(p[1], 0.0f);")
    assert _good(source, "nvrtc", ("--expt-relaxed-constexpr", "--expt-extended-lambda"))


def test_lambdas_may_be_annotated_with_the_option_that_nvcc_wants_for_it() -> None:
    at = "auto at = [=] __device__ (int i) { return p[i]; };\n"
    one = "auto one = [p]\n__host__ __device__\n{ return *p; };\n"
    source = _with_body(at + one + "p[0] = at(1) + one();")
    assert "--extended-lambda" in _bad(source, "nvrtc").log
    assert _good(source, "nvrtc", ("--expt-extended-lambda",))
    wrong = _bad(source.replace("one();", "none();"), "nvrtc", ("--expt-extended-lambda",))
    line = source[: source.index("one();")].count("\n") + 1
    assert f"kernel.cu({line})" in wrong.log


def test_the_log_names_no_folder_of_ours() -> None:
    log = _bad(
        _with_body("p[0] = std::make_signed_t<Unknown>(1); typename std::make_signed<float[3]>::type a;")
    ).log
    assert "warpsmith/traits.h" in log
    assert str(HEADERS) not in log
