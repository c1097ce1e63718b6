"""`init` where a CUDA compiler refuses the first guess."""

from pathlib import Path

import pytest

from tests.extensions.scaffold.test_init import written
from warpsmith.backends.cuda.toolkit import cccl_version
from warpsmith.cli.validate import Report, Wishes, validate
from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.command.init_trials import tried_scaffold
from warpsmith.settings import Settings

SETTINGS = Settings(_env_file=None)
KERNEL = (
    "template <typename T> __global__ void k(T* out, const T* in, int n) {{ int i = threadIdx.x; {body} }}\n"
)


def report_of(sources: list[Path], folder: Path, settings: Settings = SETTINGS, **wanted: str) -> Report:
    """What `validate --compile` finds in the job file that `init` writes for these sources."""
    target = folder / "job.yaml"
    chosen = InitOptions(wanted.get("entry"), permitted=settings.permitted_includes())
    with JobCompiler(settings) as compiler:
        target.write_text(tried_scaffold(sources, target, chosen, compiler))
    return validate(target, Wishes(settings, compiles=True))


def errors(report: Report) -> list[str]:
    """Messages of a report's errors."""
    return [str(f) for f in report.findings if f.is_error]


def test_a_header_that_only_host_code_needs_is_sent_empty(tmp_path: Path) -> None:
    text = "#include <absent/library.h>\n#include <absent_too.h>\n" + KERNEL.format(body="out[i] = in[i];")
    text += "template <class S> S host(S x) { return absent_call(x); }\n"
    (source,) = written(tmp_path, k_dot_cuh=text)
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.empty_headers == ("absent/library.h", "absent_too.h")
    assert report.job.kernel.files["absent/library.h"] == ""
    assert "these were not found, and the kernel compiles without them" in (tmp_path / "job.yaml").read_text()


def test_a_missing_header_that_the_kernel_needs_is_named_and_stays_an_error(tmp_path: Path) -> None:
    text = "#include <absent.h>\n" + KERNEL.format(body="out[i] = absent::of(in[i]);")
    (source,) = written(tmp_path, k_dot_cu=text)
    report = report_of([source], tmp_path)
    assert "absent.h" in errors(report)[0]
    made = (tmp_path / "job.yaml").read_text()
    assert "not found: absent.h. Give their folders to init (-I)." in made
    assert "empty_headers" not in made


def test_a_folder_of_the_operator_is_named_where_it_has_the_header(tmp_path: Path) -> None:
    source, _ = written(
        tmp_path,
        jobs__k_dot_cu="#include <lib/types.h>\n" + KERNEL.format(body="out[i] = lib::of(in[i], P<T>());"),
        elsewhere__lib__types_dot_h="""template <class T> struct P {};
        namespace lib { template <class T> __device__ T of(T v, P<T>) { return v; } }""",
    )
    settings = Settings(_env_file=None, include_dirs=f"mine={tmp_path / 'elsewhere'}")
    report = report_of([source], tmp_path / "jobs", settings)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.includes == ("mine",)


def test_types_that_the_compiler_refuses_give_way_to_others(tmp_path: Path) -> None:
    body = "static_assert(sizeof(T) == 4); out[i] = in[i];"
    (source,) = written(tmp_path, k_dot_cu=KERNEL.format(body=body))
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.entry == "k<float>"


def test_a_header_that_declares_an_unknown_type_is_included_first(tmp_path: Path) -> None:
    source, _ = written(
        tmp_path,
        k_dot_cuh="__device__ real one() { return 1; }\n" + KERNEL.format(body="out[i] = one();"),
        types_dot_h="#pragma once\ntypedef half real;\n",
    )
    text = source.read_text().replace("template <typename T> ", "").replace("T*", "real*")
    source.write_text(text)
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.text == '#include <cuda_fp16.h>\n#include "types.h"\n#include "k.cuh"\n'


def test_a_header_that_another_one_relies_on_is_included_first(tmp_path: Path) -> None:
    source, _, _ = written(
        tmp_path,
        k_dot_cuh="namespace lib { " + KERNEL.format(body="out[i] = in[i] + T(math::one(i));") + "}\n",
        math_dot_cuh="#pragma once\nnamespace lib::math { __device__ inline float one(int) { return 1; } }\n",
        other_dot_cuh="namespace lib::other { __device__ inline float one(int) { return 2; } }\n",
    )
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.text == '#include <cuda_fp16.h>\n#include "math.cuh"\n#include "k.cuh"\n'


@pytest.mark.parametrize(
    ("declared", "definition"),
    [
        ("float (*Act)(const float&)", "inline float Act(const float& v0) { return v0; }"),
        ("T (*Act)(float, T)", "inline half Act(float v0, half v1) { return {}; }"),
    ],
)
def test_a_function_of_the_host_program_gets_a_stand_in(
    tmp_path: Path, declared: str, definition: str
) -> None:
    call = "Act(float(in[i]))" if "const" in declared else "Act(1.0f, in[i])"
    text = "#include <cuda_fp16.h>\n" + KERNEL.format(body=f"out[i] = T({call});")
    (source,) = written(tmp_path, k_dot_cuh=text.replace("typename T", f"typename T, {declared}"))
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert definition in report.job.kernel.text
    assert report.job.kernel.entry == "k<half, Act>"
    assert "the host program has Act; here it is made up" in (tmp_path / "job.yaml").read_text()


def test_members_of_structs_and_names_from_elsewhere_bind_a_template(tmp_path: Path) -> None:
    text = """#include <cuda_fp16.h>
    namespace outer { using Order = int; }
    namespace lib { using namespace outer;
    template <typename D, typename I> struct Paged { D* data; I* indices; };
    template <typename DType, typename IdType, Order O, int ITEMS_PER_THREAD>
    __global__ void k(Paged<DType, IdType> p, float* out) { out[p.indices[0]] = p.data[ITEMS_PER_THREAD]; }
    }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.entry == "lib::k<half, int, static_cast<lib::Order>(0), 4>"


def test_a_quantised_type_is_no_float_of_the_others(tmp_path: Path) -> None:
    text = """#include <cuda_fp16.h>
    template <typename T> struct Top;
    template <> struct Top<signed char> { static constexpr int v = 127; };
    template <typename T, typename O> __global__ void quant(O* o, const T* in) { o[0] = O(Top<O>::v); }"""
    (source,) = written(tmp_path, k_dot_cu=text)
    report = report_of([source], tmp_path)
    assert errors(report) == []
    assert report.job is not None
    assert report.job.kernel.entry == "quant<half, int8_t>"


def test_a_toolkit_that_lacks_a_name_is_named_with_its_version(tmp_path: Path) -> None:
    text = "#include <cuda/cmath>\nstruct D { cuda::of_a_later_toolkit<unsigned> impl; };\n"
    (source,) = written(tmp_path, k_dot_cu=text + KERNEL.format(body="D d; out[i] = in[i];"))
    (said,) = errors(report_of([source], tmp_path))
    assert cccl_version().count(".") == 2
    assert f"has CCCL {cccl_version()}, which may be older than `cuda::of_a_later_toolkit`" in said


def test_without_a_compiler_the_first_guess_stays(tmp_path: Path) -> None:
    body = "static_assert(sizeof(T) == 4); out[i] = in[i];"
    (source,) = written(tmp_path, k_dot_cu=KERNEL.format(body=body))
    target = tmp_path / "job.yaml"
    assert 'entry: "k<half>"' in tried_scaffold([source], target, InitOptions(), lambda job: None)
