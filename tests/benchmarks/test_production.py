"""The bench over production kernels, tried on sources written here in their manner."""

from pathlib import Path

import pytest

from benchmarks.production import run as production
from benchmarks.production.jobs import Made, descriptions, made_jobs
from benchmarks.production.run import page, run_all, until
from testbed.deadlines import HANGS_S
from warpsmith.domain.device import Backend
from warpsmith.extensions.scaffold.reading.file_declarations import declarations, taken
from warpsmith.sandbox import probe_devices

SOURCE = """
#pragma once
#include <torch/all.h>
#define TWICE(x) \\
  ((x) + (x))
namespace outer {
namespace {
// A kernel( in a comment;
enum Mode { FAST, SLOW };
template <typename T, int width = 4>
struct alignas(16) Pack { T data[width]; };
constexpr int sizes[] = {1, 2};
template <int N> __device__ float inner(float x) {
#if N > 2
  if (x > 0) {
#else
  if (x < 0) {
#endif
    return x;
  }
  return -x;
}
}
#ifdef USE_ROCM
__device__ float pick(float x) { return x; }
#elif defined(OLD)
__device__ float pick(float x) { return x + 1; }
#else
__device__ float pick(float x) { return 2 * x; }
#endif
template <typename T, float (*op)(float)>
__global__ void scale(T* y, const T* x, int n) { y[0] = op(TWICE(x[sizes[0]])); }
template <> __global__ void scale<double, nullptr>(double* y, const double*, int) { y[0] = 0; }
void launch(torch::Tensor t) { scale<float, pick><<<1, 1>>>(nullptr, nullptr, 1); }
}
"""


def test_declarations_are_taken_with_their_namespaces_and_conditions() -> None:
    assert taken(SOURCE, ["inner"]).startswith("namespace outer { \ntemplate <int N>")
    assert taken(SOURCE, ["TWICE"]) == "#define TWICE(x) \\\n  ((x) + (x))\n"
    assert "alignas(16) Pack { T data[width]; };" in taken(SOURCE, ["Pack"])
    assert "enum Mode { FAST, SLOW };" in taken(SOURCE, ["Mode"])
    assert "constexpr int sizes[] = {1, 2};" in taken(SOURCE, ["sizes"])
    conditions = [d.conditions for d in declarations(SOURCE) if d.declares("pick")]
    assert conditions == [
        ("#if (defined(USE_ROCM))",),
        ("#if !(defined(USE_ROCM)) && (defined(OLD))",),
        ("#if !(defined(USE_ROCM)) && !(defined(OLD)) && (1)",),
    ]


def test_one_of_several_declarations_can_be_asked_for() -> None:
    both, first = taken(SOURCE, ["scale"]), taken(SOURCE, ["scale#1"])
    assert "template <>" in both
    assert "template <>" not in first
    assert "launch" not in both
    with pytest.raises(LookupError, match="scale#3"):
        taken(SOURCE, ["scale#3"])
    with pytest.raises(LookupError, match="missing"):
        taken(SOURCE, ["missing"])


def test_descriptions_have_names_of_their_own() -> None:
    names = [d["name"] for d in descriptions()]
    assert len(names) == len(set(names)) >= 25


DESCRIPTION = """
- name: mine_scale
  project: mine
  backend: opencl
  options: []
  entry: scale
  take: {lib/scale.cl: [FACTOR, scaled, scale]}
  arguments:
    - {name: y, dtype: float32, role: output, shape: [n]}
    - {name: x, dtype: float32, role: input, shape: [n]}
    - {name: n, dtype: int32, role: scalar, value: n}
  launch: {grid: ["ceil_div(n, 64)"], block: [64]}
  workloads: [{n: 4096}]
  reference: |
    def reference(inputs, dims):
        return {"y": 2 * inputs["x"]}
- name: mine_lost
  project: mine
  entry: lost
  take: {lib/scale.cl: [lost]}
"""
KERNELS = """
#include "host_only.h"
#define FACTOR 2
inline float scaled(float x) { return FACTOR * x; }
__kernel void scale(__global float* y, __global const float* x, const int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = scaled(x[i]);
}
int host_only() { return 1; }
"""


def test_a_described_kernel_is_taken_out_tuned_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(production, "BEYOND_S", HANGS_S)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "mine.yaml").write_text(DESCRIPTION)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "scale.cl").write_text(KERNELS)
    made = list(made_jobs({"mine": tmp_path}, HANGS_S, folder=tmp_path / "kernels"))
    assert made[0].job is not None
    few = made[0].job.budget.model_copy(update={"trials": 4})
    made[0] = Made(made[0].name, made[0].job.model_copy(update={"budget": few}))
    assert "host_only" not in made[0].job.kernel.text
    assert [m.name for m in made_jobs({"mine": tmp_path}, 1.0, "*_lost,other", tmp_path / "kernels")] == [
        "mine_lost"
    ]
    assert [m.name for m in until(HANGS_S, iter(made))] == ["mine_scale", "mine_lost"]
    assert list(until(-1, iter(made))) == []
    device = next(d for d in probe_devices().devices if d.backend is Backend.OPENCL)
    record = run_all(iter(made), device, "the test", tmp_path / "out")
    scale, lost = record["jobs"]
    assert scale.get("state") == "done", scale
    assert scale["trials"] > 0
    assert scale["stages_s"]["baseline"] > 0
    assert scale["workloads"][0]["workload"] == "n=4096"
    assert "lost" in lost["not_made"]
    assert record["mean_speedup"] == pytest.approx(scale["speedup"])
    assert (tmp_path / "out" / "production.md").read_text() == page(record)
    assert "| mine_scale |" in page(record)
