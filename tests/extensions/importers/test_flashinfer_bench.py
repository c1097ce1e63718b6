"""`init` on files of FlashInfer-Bench: a definition's axes, tensors and traces become a job."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from warpsmith.cli.app import app
from warpsmith.domain.jobs.job import Job
from warpsmith.job_files.jobfile import load_job

KERNEL = """#include <cuda_fp16.h>
__global__ void norm(const half* x, const half* weight, half* y, float eps, int rows, int hidden) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * hidden) y[i] = __hmul(x[i], weight[i % hidden]);
}
"""
DEFINITION: dict[str, Any] = {
    "name": "norm_h512",
    "op_type": "rmsnorm",
    "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 512}},
    "inputs": {
        "x": {"shape": ["rows", "hidden"], "dtype": "float16"},
        "weight": {"shape": ["hidden"], "dtype": "float16"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"output": {"shape": ["rows", "hidden"], "dtype": "float16"}},
    "reference": "import torch\ndef run(x, weight, eps):\n    return x * weight\n",
}


def trace(rows: int, **changed: Any) -> str:
    """A line of a file of traces."""
    inputs = {"x": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-6}}
    workload = {"uuid": str(rows), "axes": {"rows": rows}, "inputs": inputs}
    return json.dumps({"definition": "norm_h512", "workload": workload, "solution": None} | changed)


def init(folder: Path, *names: str) -> str:
    """The command's output; the job is `job.yaml`."""
    listed = [str(folder / name) for name in names]
    result = CliRunner().invoke(app, ["init", *listed, "-o", str(folder / "job.yaml")])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return str(result.exception)
    return result.output


def job_in(folder: Path) -> Job:
    """The job that was written."""
    return load_job(folder / "job.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a kernel, its definition and two distinct workloads."""
    (tmp_path / "norm.cu").write_text(KERNEL)
    (tmp_path / "norm.json").write_text(json.dumps(DEFINITION))
    (tmp_path / "norm.jsonl").write_text("\n".join((trace(7), trace(7), "", trace(4096))))
    return tmp_path


def test_a_definition_gives_shapes_roles_values_and_workloads(folder: Path) -> None:
    init(folder, "norm.cu", "norm.json", "norm.jsonl")
    job = job_in(folder)
    assert [dict(w.dimensions) for w in job.workloads] == [
        {"rows": 7, "hidden": 512},
        {"rows": 4096, "hidden": 512},
    ]
    found = {a.name: a for a in job.kernel.arguments}
    assert [e.text for e in found["x"].shape] == ["rows", "hidden"]
    assert [e.text for e in found["weight"].shape] == ["hidden"]
    assert [e.text for e in found["y"].shape] == ["rows", "hidden"], (
        "the one tensor left is the one pointer left"
    )
    assert {n: a.role.value for n, a in found.items()} == {
        "x": "input", "weight": "input", "y": "output", "eps": "scalar", "rows": "scalar", "hidden": "scalar",
    }  # fmt: skip
    values = {n: a.value.text for n, a in found.items() if a.value is not None}
    assert values == {"eps": "1e-06", "rows": "rows", "hidden": "hidden"}
    assert "#   def run(x, weight, eps):" in (folder / "job.yaml").read_text()


def test_a_solution_gives_its_sources(folder: Path) -> None:
    solution = {
        "name": "mine",
        "definition": "norm_h512",
        "author": "somebody",
        "spec": {"language": "cuda", "target_hardware": ["H100"], "entry_point": "main.cu::run"},
        "sources": [
            {"path": "main.cu", "content": '#include "part/types.h"\n' + KERNEL},
            {"path": "part/types.h", "content": "typedef float real;\n"},
            {"path": "notes.txt", "content": "none"},
        ],
    }
    (folder / "mine.json").write_text(json.dumps(solution))
    output = init(folder, "norm.json", "mine.json")
    assert "wrote" in output and not (folder / "job" / "notes.txt").exists()
    assert list(job_in(folder).kernel.files) == ["part/types.h"]
    assert "sizes of rows: norm.json leaves them to workloads" in (folder / "job.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("norm.json", "{", "norm.json is no JSON"),
        ("norm.json", "[]", "neither a definition nor a solution"),
        ("norm.json", json.dumps(DEFINITION | {"inputs": {"x": {}}}), "inputs.x.shape: Field required"),
        ("norm.jsonl", "\n{}", "norm.jsonl:2: workload: Field required"),
        ("norm.jsonl", trace(3, definition="other"), "no workload of norm_h512; it has other"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_field(
    folder: Path, name: str, text: str, message: str
) -> None:
    (folder / name).write_text(text)
    assert message in init(folder, "norm.cu", "norm.json", "norm.jsonl")
    assert not (folder / "job.yaml").exists()


def test_a_solution_writes_nothing_outside_of_its_folder(folder: Path) -> None:
    solution = {"name": "s", "definition": "d", "spec": {"language": "cuda"}, "sources": [
        {"path": "../evil.cu", "content": KERNEL}]}  # fmt: skip
    (folder / "s.json").write_text(json.dumps(solution))
    assert "a file outside of its folder: ../evil.cu" in init(folder, "s.json")
    assert not (folder / "evil.cu").exists()
