"""Objects of a class that several loops load are kept in registers: right on the CPU, or left as they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda_on_cpu import results
from tests.extensions.rules.test_production_style import job_of, reason, report
from tests.nvrtc_compile import compile_cuda
from warpsmith.extensions.rules.templater import make_template

VECTOR = """
template <typename T, int N> struct alignas(sizeof(T) * N) pack_t {
  T v[N];
  __device__ void load(const T* p) { *this = *reinterpret_cast<const pack_t*>(p); }
  __device__ void store(T* p) const { *reinterpret_cast<pack_t*>(p) = *this; }
  __device__ T& operator[](int i) { return v[i]; }
};
template <typename T> __device__ pack_t<T, 4> load4(const T* p) {
  return *reinterpret_cast<const pack_t<T, 4>*>(p);
}
"""
TOP = """
template <typename T, int N> __global__ void k(const T* __restrict__ x, T* __restrict__ y, int n, int rows) {
  __shared__ float part[64];
  using vec_t = pack_t<T, N>;
  const T* row = x + blockIdx.x * n;
  const int packs = n / N;
  float most = 0.0f;
"""
FIRST = """
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    vec_t u;
    u.load(row + i * N);
    for (int j = 0; j < N; ++j) { u[j] = fabsf(u[j]); most = fmaxf(most, u[j]); }
  }
"""
BETWEEN = """
  part[threadIdx.x] = most;
  __syncthreads();
  for (int j = 0; j < blockDim.x; ++j) most = fmaxf(most, part[j]);
"""
SECOND = """
  for (int i = threadIdx.x; i < packs; i += blockDim.x) {
    vec_t u;
    u.load(row + i * N);
    for (int j = 0; j < N; ++j) u[j] = u[j] / (1.0f + most);
    u.store(y + blockIdx.x * n + i * N);
  }
"""
METHODS = VECTOR + TOP + FIRST + BETWEEN + SECOND + "}"
NAMED_PLACE = METHODS.replace(
    SECOND,
    """
  for (int j = threadIdx.x; j < packs; j += blockDim.x) {
    const int at = j * N;
    vec_t w;
    w.load(row + at);
    for (int m = 0; m < N; ++m) w[m] = w[m] / (1.0f + most);
    w.store(y + blockIdx.x * n + at);
  }
""",
)
FUNCTIONS = METHODS.replace("vec_t u;\n    u.load(row + i * N);", "vec_t u = load4(row + i * N);").replace(
    BETWEEN, BETWEEN + "  vec_t unused;\n"
)
KEPT = (METHODS, NAMED_PLACE, FUNCTIONS)


def names(source: str) -> set[str]:
    """Parameters that the rules make."""
    found = report(source, "k<float, 4>", block=[16])
    return {p.name for p in found.template.space.parameters}


@pytest.mark.parametrize("source", KEPT)
def test_objects_that_two_loops_load_are_kept_once(source: str) -> None:
    found = report(source, "k<float, 4>", block=[16])
    space = found.template.space
    values = {p.name: p.values for p in space.parameters}
    assert values.get("WS_KEEP_PACK") == (1,), found.declined
    defaults = {p.name: p.baseline_value for p in space.parameters}
    for keep in (0, 1, 4):
        configured = found.template.configured(defaults | {"WS_KEEP": keep})
        assert compile_cuda(configured.source, configured.kernel.entry) == ""
    body = found.template.kernel.text.split("WS_KEEP > 0")[-1]
    assert body.count("ws_object_0[ws_round]") == 2


@pytest.mark.parametrize("source", KEPT)
@pytest.mark.parametrize("n", [4, 12, 64, 100, 260])
def test_rows_of_any_length_are_right(tmp_path: Path, source: str, n: int) -> None:
    fields: dict[str, Any] = job_of(source, "k<float, 4>", block=[16]).model_dump(mode="json")
    job = type(job_of(source)).model_validate(fields | {"workloads": [{"dimensions": {"rows": 3, "n": n}}]})
    template = make_template(job).template
    defaults = {p.name: int(p.baseline_value) for p in template.space.parameters}
    chosen = [defaults | {"WS_KEEP": keep} for keep in (0, 1, 2, 8)]
    found = results(job, [(template, values) for values in chosen], tmp_path)
    for one in found[1:]:
        np.testing.assert_array_equal(one["y"], found[0]["y"])


USED = "    for (int j = 0; j < N; ++j) u[j] = u"
LOADED = "    u.load(row + i * N);\n" + USED
WRITTEN = METHODS.replace("const T* __restrict__ x", "T* __restrict__ x").replace("const T* row", "T* row")


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        pytest.param(METHODS, LOADED, "    u.load(row + i);\n" + USED, id="another place"),
        pytest.param(METHODS, BETWEEN, BETWEEN + "  row = x;\n", id="a row that changes"),
        pytest.param(WRITTEN, "u.store(y", "u.store(x", id="a row that is written"),
        pytest.param(METHODS, LOADED, "    u[0] = 1.0f;\n" + LOADED, id="set before"),
        pytest.param(METHODS, LOADED, "    if (i % 2 == 0)\n" + LOADED, id="not always"),
        pytest.param(
            METHODS,
            FIRST,
            FIRST.replace("vec_t u", "using vec_t = pack_t<T, 4>;\n    vec_t u"),
            id="type of a loop",
        ),
    ],
)
def test_other_objects_are_loaded_again(source: str, old: str, new: str) -> None:
    assert source.count(old) == 1
    assert "WS_KEEP" not in names(source.replace(old, new))


def test_an_object_without_a_plain_declaration_anywhere_may_need_a_value() -> None:
    source = FUNCTIONS.replace("  vec_t unused;\n", "")
    assert "WS_KEEP" not in names(source)
    found = report(source, "k<float, 4>", block=[16])
    assert reason(found, "row_in_registers") == "no element is used in two loops without a change between"
