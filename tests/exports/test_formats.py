"""Every format, opened in the tool that it is for, in an environment of its own; see the Makefile."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testbed.servers import give_up
from tests.exports.results import BY, awkward, in_hip, result
from warpsmith.backends.cuda.toolkit import toolkit_includes
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.state import TrialState
from warpsmith.domain.templates.outcome import (
    CutShort,
    Measured,
    Rejected,
    Stage,
    TimeSummary,
    WorkloadTiming,
)
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.result import Result
from warpsmith.extensions.exports.operator import Operator
from warpsmith.extensions.exports.wanted import ExportRequest
from warpsmith.extensions.exports.write import write_export
from warpsmith.http_models import TrialView
from warpsmith.registry import Kind, named

TOOLS = Path(os.environ.get("WARPSMITH_EXPORTS_VENV", Path(__file__).parents[2] / ".venv-exports")).absolute()
MAIN = """
#include <cstdio>
#include "scaled.hpp"
int main() {
  const float *x = reinterpret_cast<float *>(0x10000000);
  float *y = reinterpret_cast<float *>(0x20000000);
  auto at = [](const void *p, int n) {
    return reinterpret_cast<float *>(reinterpret_cast<uintptr_t>(p) + n);
  };
  using scaled_ws::chosen;
  std::printf("%d %d %d %d %d %d %d\\n", chosen(x, y, 2.5f, 1024, 256), chosen(x, y, 2.5f, 1024, 512),
              chosen(x, y, 2.5f, 1024, 2048), chosen(x, y, 2.0f, 1024, 512),
              chosen(at(x, 4), y, 2.5f, 1024, 512), chosen(x, at(x, 1024), 2.5f, 1024, 512),
              chosen(x, y, 2.5f, 1023, 512));
  std::puts(scaled_ws::error_text(scaled_ws::launch(nullptr, x, y, 2.5f, 1024, 512)));
  std::puts(scaled_ws::error_text(scaled_ws::launch(nullptr, x, y, 2.5f, 1024, 0)));
}
"""
TORCH = """
import torch
from scaled import scaled, set_fallback

x = torch.ones(4, 256, 1024)
try:
    scaled(x)
except RuntimeError as exc:
    print(exc)
set_fallback(lambda x, y, *, by: y.copy_(x * by))
print(tuple(scaled(x).shape), float(scaled(x).sum()), float(scaled(x, by=2.0).sum()))
print(float(torch.compile(lambda t: scaled(t) + 1, backend="aot_eager", fullgraph=True)(x).sum()))
print(tuple(scaled(torch.empty(3, 1024, device="meta")).shape))
given = torch.ones(4, 1024), torch.empty(4, 1024)
found = torch.library.opcheck(torch.ops.warpsmith.scaled.default, given)
print(set(found.values()))
"""
TVM_FFI = """
import sys, numpy, tvm_ffi
sys.path.insert(0, ".")
import build
call = tvm_ffi.load_module(str(build.build())).scaled
x = tvm_ffi.from_dlpack(numpy.ones((4, 1024), numpy.float32))
try:
    call(x, x, 2.5)
except ValueError as exc:
    print(exc)
try:
    call(x)
except TypeError as exc:
    print(exc)
"""
HF = """
from kernels._rust import Build
print(Build.open(".").general.backends)
text = open("build.toml").read().replace("edition = 5", "edition = 50")
open("build.toml", "w").write(text)
try:
    Build.open(".")
except ValueError:
    print("it does read")
"""
FLASHINFER = """
import importlib.util, sys, types
from pathlib import Path
folder = Path(importlib.util.find_spec("flashinfer_bench").submodule_search_locations[0])
for name in ("flashinfer_bench", "flashinfer_bench.data"):  # without what they import for GPUs
    package = types.ModuleType(name)
    package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package
from flashinfer_bench.data.solution import Solution
made = Solution.model_validate_json(Path("solution.json").read_text())
print(made.definition, made.get_entry_symbol(), made.spec.language.value, made.spec.binding.value)
Path("main.cc").write_text(made.get_entry_source().content)
for source in made.sources[1:]:
    Path(source.path).write_text(source.content)
"""
DRIVER = r"""
#include <cuda.h>
#include <stdio.h>
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute name, int value) {
  if (name == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) printf("non-portable %d ", value);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **extra) {
  printf("%u.%u.%u %u.%u.%u %u stream %p function %p", c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
         c->blockDimY, c->blockDimZ, c->sharedMemBytes, (void *)c->hStream, (void *)f);
  for (unsigned i = 0; i < c->numAttrs; i++) {
    CUlaunchAttributeValue v = c->attrs[i].value;
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) printf(" cooperative %d", v.cooperative);
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      printf(" cluster %u.%u.%u", v.clusterDim.x, v.clusterDim.y, v.clusterDim.z);
  }
  printf(" values %p %d %g\n", *(void **)p[0], *(int *)p[2], *(float *)p[3]);
  fflush(stdout);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c,
                        unsigned shared, CUstream s, void **p, void **extra) {
  printf("plain %u\n", x);
  fflush(stdout);
  return CUDA_SUCCESS;
}
"""
JOINED = """
import ctypes
import scaled
from scaled import _dispatch
driver = ctypes.CDLL("./driver.so")
scaled._driver = lambda: driver
for launch in (_dispatch.launch_of(0, rows=256, columns=1024), _dispatch.pick(rows=256, columns=1024)):
    scaled._plan(ctypes.c_void_p(0x70), launch)(0x50, 0x1000, 0x2000, 262144, 2.5)
"""
INCLUDES = "from tvm_ffi import libinfo as l; print(l.find_include_path(), l.find_dlpack_include_path())"
T4 = """
import json
import jsonschema
from kernel_tuner.file_utils import output_file_schema
version, schema = output_file_schema("results")
made = json.load(open("results.json"))
jsonschema.validate(made, json.loads(schema) if isinstance(schema, str) else schema)
print(version == made["schema_version"], [r["invalidity"] for r in made["results"]])
"""


def exported(form: str, folder: Path, trials: tuple[TrialView, ...] = ()) -> Path:
    """An export of the result that the tests have."""
    paths = write_export(ExportRequest(result(), trials), form, folder / form)
    assert json.loads((folder / form / "evidence.json").read_text())["device"] == result().device
    assert all(p.is_file() for p in paths)
    return folder / form


def said(folder: Path, program: str) -> list[str]:
    """What a program prints in the tools' environment, in the folder of an export."""
    python = TOOLS / "bin" / "python"
    if not python.exists():
        give_up(f"{TOOLS} is not there; `make test-exports` makes it")
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [str(python), "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()


def built(folder: Path, source: str, *words: str) -> Path:
    """A program of an export, compiled without a warning."""
    compiler = shutil.which("g++")
    assert compiler is not None, "no C++ compiler"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", *words]
    subprocess.run([compiler, *flags, source, "-ldl", "-o", "made"], cwd=folder, check=True)
    return folder / "made"


def test_the_header_chooses_what_was_verified_and_says_why_it_cannot_launch(tmp_path: Path) -> None:
    folder = exported("cpp", tmp_path)
    (folder / "main.cc").write_text(MAIN)
    lines = subprocess.run([built(folder, "main.cc")], capture_output=True, text=True, check=True).stdout
    chosen, error, empty = lines.splitlines()
    # Two tuned shapes or between; beyond; another scalar; an odd address; overlapping; not as divisible.
    assert chosen == "1 1 0 0 0 0 0"
    assert "libcuda.so.1" in error
    assert empty == "no error"


def test_hip_kernels_that_were_tuned_on_nvidia_become_cubins(tmp_path: Path) -> None:
    write_export(ExportRequest(in_hip()), "cpp", tmp_path)
    (tmp_path / "main.cc").write_text(MAIN)
    assert subprocess.check_output([built(tmp_path, "main.cc")], text=True).startswith("1 1 0 0 0 0 0\n")
    in_cuda = Operator(result()).binaries
    assert Operator(in_hip()).binaries == in_cuda
    assert len(in_cuda) == 2
    assert in_cuda[0].cubin.startswith(b"\x7fELF")


def test_kernels_that_were_tuned_on_amd_become_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"binaries for gfx942, since cubins are for NVIDIA; use c"):
        write_export(ExportRequest(in_hip(architecture="gfx942")), "torch", tmp_path)


def test_a_result_exports_itself(tmp_path: Path) -> None:
    paths = Result(result()).export("cpp", tmp_path, name="by_two")
    assert [p.name for p in paths] == ["by_two.hpp", "evidence.json"]


def test_two_headers_live_in_one_program(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_export(ExportRequest(result(), name=name), "cpp", tmp_path)
    calls = "\n".join(
        f"int {n}_() {{ return {n}_ws::chosen(nullptr, nullptr, 2.5f, 1024, 512); }}"
        for n in ("one", "other")
    )
    text = (
        '#include "one.hpp"\n#include "other.hpp"\n' + calls + "\nint main() { return one_() - other_(); }\n"
    )
    (tmp_path / "main.cc").write_text(text)
    subprocess.run([built(tmp_path, "main.cc")], check=True)


def test_the_torch_operator_works_and_is_traced_without_a_device(tmp_path: Path) -> None:
    lines = said(exported("torch", tmp_path), TORCH)
    n = 4 * 256 * 1024
    assert "give a function to set_fallback" in lines[0]
    assert lines[1] == f"(4, 256, 1024) {BY * n} {2.0 * n}"
    assert lines[2] == str((BY + 1) * n)
    assert lines[3] == "(3, 1024)"
    assert lines[4] == "{'SUCCESS'}"


def test_the_tvm_ffi_module_is_built_by_a_compiler_alone_and_loaded(tmp_path: Path) -> None:
    lines = said(exported("tvm-ffi", tmp_path), TVM_FFI)
    assert lines[0] == "scaled: tensors must lie on a CUDA device"
    assert "Expected 3" in lines[1]


def test_the_tree_for_the_hub_is_read_by_its_library(tmp_path: Path) -> None:
    assert said(exported("hf-kernel", tmp_path), HF) == ["[Backend.CUDA]", "it does read"]


def test_the_solution_is_read_by_flashinfer_bench_and_compiles(tmp_path: Path) -> None:
    folder = exported("flashinfer-bench", tmp_path)
    assert said(folder, FLASHINFER) == ["scaled run cuda tvm-ffi"]
    includes = said(folder, INCLUDES)
    words = [f"-isystem{path}" for path in includes[0].split()]
    built(folder, "main.cc", "-shared", "-fPIC", *words)


def test_the_tree_for_sglang_compiles_and_names_its_function(tmp_path: Path) -> None:
    folder = exported("sglang", tmp_path)
    csrc = folder / "python/sglang/kernels/jit/csrc/warpsmith"
    module = (folder / "python/sglang/kernels/ops/scaled.py").read_text()
    compile(module, "scaled.py", "exec")
    assert 'cuda_wrappers=[("run", "scaled_run")]' in module
    includes = said(folder, INCLUDES)
    wrapper = '#include "scaled.cuh"\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, scaled_run);\n'
    (csrc / "wrapper.cc").write_text(wrapper)
    built(csrc, "wrapper.cc", "-shared", "-fPIC", *(f"-isystem{path}" for path in includes[0].split()))


AWKWARD = """
from lambda_ import lambda_, set_fallback
import torch
given = {}
set_fallback(lambda in_, key_, shape_, *, torch_, twice: given.update(d=shape_, by=torch_, twice=twice))
x = torch.ones(9)
lambda_(x, 8, key_=torch.empty(9), twice=False)
print(given)
"""


def test_names_that_languages_and_generated_files_have_are_changed(tmp_path: Path) -> None:
    for form in ("torch", "tvm-ffi", "cpp", "hf-kernel", "sglang", "flashinfer-bench"):
        write_export(ExportRequest(awkward()), form, tmp_path / form)
    assert said(tmp_path / "torch", AWKWARD) == ["{'d': 8, 'by': 2.5, 'twice': False}"]
    said(tmp_path / "tvm-ffi", "import build; build.build()")
    for path in [*(tmp_path / "hf-kernel").rglob("*.py"), *(tmp_path / "sglang").rglob("*.py")]:
        compile(path.read_text(), str(path), "exec")


def test_a_scalar_that_does_not_hold_its_value_is_no_launch(tmp_path: Path) -> None:
    folder = exported("cpp", tmp_path)
    text = (folder / "scaled.hpp").read_text()
    # Without a driver no call comes so far.
    text = text.replace("if (ws_status) return ws_status;\n    int ws_number", "int ws_number", 1)
    text = text.replace("!ws_own->is_known_device", "false", 1)
    (folder / "scaled.hpp").write_text(text)
    (folder / "main.cc").write_text(
        '#include <cstdio>\n#include "scaled.hpp"\nint main() {\n'
        "  float *x = reinterpret_cast<float *>(0x10000000), *y = reinterpret_cast<float *>(0x20000000);\n"
        "  const int status = scaled_ws::launch(nullptr, x, y, 2.5f, 1 << 20, 1 << 12);\n"
        "  std::puts(scaled_ws::error_text(status));\n}\n"
    )
    done = subprocess.run(
        [built(folder, "main.cc", "-Wno-unused")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "the kernel has no launch for this shape"


def trial(number: int, outcome: Measured | CutShort | Rejected) -> TrialView:
    return TrialView(
        number=number,
        candidate="c1",
        round=1,
        configuration={"BLOCK": 128, "PER": 1},
        state=TrialState.FINISHED,
        outcome=outcome,
    )


def test_trials_are_read_by_the_schema_of_kernel_tuner(tmp_path: Path) -> None:
    summary = TimeSummary(median_us=4.0, low_us=3.9, high_us=4.1, samples=10, launches_per_sample=10)
    timing = WorkloadTiming(workload="columns=1024,rows=256", cold=summary)
    trials = (
        trial(0, Measured(timings=(timing,), objective=0.7)),
        trial(1, Rejected(stage=Stage.COMPILE, reason="error")),
        trial(2, Rejected(stage=Stage.CORRECTNESS, reason="wrong")),
    )
    lines = said(exported("t4", tmp_path, trials), T4)
    assert lines == ["True ['correct', 'compile', 'correctness']"]


def test_what_no_operator_can_hold_is_refused_with_the_reason(tmp_path: Path) -> None:
    sequence = result().model_copy(update={"architecture": ""})
    with pytest.raises(InvalidInput, match="recheck or tune"):
        write_export(ExportRequest(sequence), "cpp", tmp_path)
    made = result().job
    argument = made.kernel.arguments[3].model_copy(update={"value": None, "values": ("1", "2")})
    kernel = made.kernel.model_copy(update={"arguments": (*made.kernel.arguments[:3], argument)})
    odd = result().model_copy(update={"job": Job.model_construct(**{**dict(made), "kernel": kernel})})
    with pytest.raises(InvalidInput, match="vectors by value"):
        write_export(ExportRequest(odd), "torch", tmp_path)
    with pytest.raises(InvalidInput, match="holds trials"):
        write_export(ExportRequest(result()), "t4", tmp_path)
    assert not list(tmp_path.iterdir())
    operators = {"c", "cpp", "torch", "tvm-ffi", "hf-kernel", "sglang", "flashinfer-bench"}
    assert set(named(Kind.EXPORT)) == operators | {"t4", "vllm-config", "sglang-config", "hf-config"}


def test_null_pointers_and_empty_structs_are_nobody_s_to_give(tmp_path: Path) -> None:
    was = result()
    more = ", const int* lengths, Nothing nothing)"

    def with_more(source: str | None) -> str:
        return "struct Nothing {};\n" + re.sub(r"(const float by)\)", rf"\1{more}", source or "")

    data = was.job.model_dump(mode="json")
    data["kernel"]["source"] = with_more(data["kernel"]["source"])
    data["kernel"]["arguments"] += [
        {"name": "lengths", "role": "pointer"},
        {"name": "nothing", "role": "struct", "type": "Nothing"},
    ]
    entries = tuple(e.model_copy(update={"source": with_more(e.source)}) for e in was.dispatch)
    made = ExportRequest(was.model_copy(update={"job": Job.model_validate(data), "dispatch": entries}))
    for form in ("torch", "cpp", "tvm-ffi"):
        write_export(made, form, tmp_path / form)
    text = (tmp_path / "torch" / "scaled" / "__init__.py").read_text()
    assert "scaled(Tensor x, Tensor(b!) y, *, float by=2.5) -> ()" in text
    assert 'struct.Struct("@PPifQB")' in text and ", by, 0, 0)" in text
    (tmp_path / "cpp" / "main.cc").write_text(
        '#include "scaled.hpp"\n'
        "int main() { return scaled_ws::launch(nullptr, nullptr, nullptr, 2.5f, 8, 1024); }\n"
    )
    built(tmp_path / "cpp", "main.cc")


@pytest.mark.parametrize(
    ("joined", "words"),
    [
        ({"cluster": ("8",)}, " cluster 8.1.1"),
        ({"cluster": ("4", "4"), "cooperative": True}, " cooperative 1 cluster 4.4.1"),
        ({"cooperative": True}, " cooperative 1"),
    ],
)
def test_a_torch_operator_launches_clusters_and_cooperative_grids(
    tmp_path: Path, joined: dict[str, Any], words: str
) -> None:
    """The driver's own header reads what the operator hands over."""
    was = result()
    launch = Launch.model_validate({"grid": ["256"], "block": ["BLOCK"], "shared_bytes": 64, **joined})
    entries = tuple(entry.model_copy(update={"launch": launch}) for entry in was.dispatch)
    made = ExportRequest(was.model_copy(update={"dispatch": entries}))
    with pytest.raises(InvalidInput, match="clusters or cooperative launches"):
        write_export(made, "cpp", tmp_path / "cpp")
    write_export(made, "torch", tmp_path)
    (tmp_path / "driver.c").write_text(DRIVER)
    includes = [f"-I{folder}" for folder in toolkit_includes()]
    command = ["cc", "-shared", "-fPIC", *includes, "driver.c", "-o", "driver.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    own, tuned = said(tmp_path, JOINED)
    assert own == "plain 2048"
    allowed = "non-portable 1 " if "4.4" in words else ""
    figures = "256.1.1 256.1.1 64 stream 0x50 function 0x70"
    assert tuned == f"{allowed}{figures}{words} values 0x1000 262144 2.5"
