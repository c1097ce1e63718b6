"""Descriptions of kernels that others wrote, held to all that can be known without their projects."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.production.jobs import DESCRIPTIONS, as_job, descriptions, projects_of
from warpsmith.device_checks.reference_check import check_reference

FOR_AGENTS = DESCRIPTIONS.parents[1] / "agents" / "kernels"
ENTRIES = descriptions(FOR_AGENTS)


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    """Checkouts whose files declare what the descriptions take, and nothing else."""
    for entry in ENTRIES:
        for file, names in entry["take"].items():
            path = tmp_path / entry["project"] / file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as stream:
                stream.writelines(f"struct {str(name).partition('#')[0]} {{}};\n" for name in names)
    return {p.name: tmp_path / p.name for p in projects_of(FOR_AGENTS)}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: str(e["name"]))
def test_a_described_kernel_is_a_valid_job_whose_reference_runs(
    entry: dict[str, Any], roots: dict[str, Path]
) -> None:
    job = as_job(entry, roots, 30)
    checked = check_reference(job, {})
    assert checked.finding is None, checked.finding
    assert checked.note.startswith("ran, with ")
    assert len(job.workloads) >= 3
    elements = max(w.dimensions.get("tokens", 1) * w.dimensions.get("hidden", 1) for w in job.workloads)
    assert elements <= 4096 * 14336


def test_a_workload_may_have_a_weight(roots: dict[str, Path]) -> None:
    (entry,) = (e for e in ENTRIES if e["name"] == "served_rotary")
    weights = {w.key: w.weight for w in as_job(entry, roots, 30).workloads}
    assert weights == {
        "heads=32,kv_heads=8,tokens=86": 267,
        "heads=32,kv_heads=8,tokens=426": 756,
        "heads=32,kv_heads=8,tokens=4096": 21,
    }
    (plain,) = (e for e in ENTRIES if e["name"] == "astra_silu_and_mul")
    assert {w.weight for w in as_job(plain, roots, 30).workloads} == {1}


def test_descriptions_name_only_known_projects_and_one_kernel_once() -> None:
    names = [e["name"] for e in (*ENTRIES, *descriptions())]
    assert len(names) == len(set(names))
    assert {p.name for p in projects_of(FOR_AGENTS)} == {"flashinfer", "llm.c", "fastkernels", "hecbench"}
    assert {e["project"] for e in descriptions()} <= {p.name for p in projects_of(DESCRIPTIONS)}
    assert "fastkernels" not in {p.name for p in projects_of(DESCRIPTIONS)}
