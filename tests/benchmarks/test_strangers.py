"""Jobs of other people's kernels: how their sources are read, what a run keeps, and one whole small job."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.first_hour.jobs import older_tree, tuned
from benchmarks.first_hour.jobs_record import live_page, live_series, pairs_page, shown, totals
from benchmarks.first_hour.strangers import JOBS, KERNELS, Kernel, as_text, lay_out
from benchmarks.provenance import ROOT
from testbed.deadlines import HANGS_S
from warpsmith.domain.device import DeviceInfo
from warpsmith.jobfile import parse_job

SOURCE = """R"(
// \xa9
__kernel void mysgemmNT(__global const float *A, int lda, __global const float *B, int ldb, __global float *C,
                        int ldc, int k, float alpha, float beta) {
  int m = get_global_id(0), n = get_global_id(1);
  float c = 0.0f;
  for (int i = 0; i < k; ++i) c += A[m + i * lda] * B[n + i * ldb];
  C[m + n * ldc] = beta * C[m + n * ldc] + alpha * c;
}
)"
"""
"""A product with the arguments that the first job names."""


def status(state: str, best: float | None) -> dict[str, Any]:
    """The part of a status that is read."""
    return {"state": state, "best_speedup": best, "feasible": 9, "trials_done": 3}


def row(name: str, live: float | None, verified: float) -> dict[str, Any]:
    """A run that ended."""
    comparison = {"verdict": "faster", "speedup": {"estimate": verified, "low": 1.5, "high": 2.5}}
    return {
        "kernel": name,
        "seed": 0,
        "seconds": 50.0,
        "load": 1.0,
        "shown_last": live,
        "feasible": 9,
        "state": "done",
        "why": "gain",
        "speedup": verified,
        "comparisons": [comparison],
        "trials": 4,
        "rejected": 1,
        "rejections": [{"stage": "check", "reason": "wrong", "count": 1}],
    }


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    """A mirror with one source, in Latin-1 and inside a raw string."""
    repository = tmp_path / "mirrors" / "nobody+mine" / "repo"
    repository.mkdir(parents=True)
    (repository / "a.cl").write_text(SOURCE, encoding="latin-1")
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "a.cl"], [*own, "commit", "--quiet", "-m", "a"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    # A mirror has the git directory alone.
    (repository / ".git").rename(tmp_path / "git")
    (repository / "a.cl").unlink()
    repository.rmdir()
    (tmp_path / "git").rename(repository)
    return tmp_path / "mirrors"


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_each_kernel_has_a_job_that_names_its_source(kernel: Kernel) -> None:
    job = yaml.safe_load((JOBS / f"{kernel.name}.yaml").read_text())
    assert job["kernel"].pop("source_file") == kernel.target
    assert parse_job(job | {"kernel": job["kernel"] | {"source": "x"}}).budget.seconds == 40


def test_a_source_is_read_without_its_raw_string_and_in_utf_8() -> None:
    text = as_text(SOURCE.encode("latin-1"))
    assert "©" in text
    assert text.strip().endswith("}")
    assert 'R"(' not in text
    assert as_text("int é;".encode()) == "int é;"


def test_the_last_figure_shown_is_that_when_the_verification_begins() -> None:
    figures = [None, 2.0, 5.0, 4.0]
    searching = [status("searching", figure) for figure in figures]
    verified = [status("verifying", 3.0), status("verifying", 1.5), status("done", 1.4)]
    found = shown([*searching, *verified])
    assert (found["shown_last"], found["shown_most"]) == (3.0, 5.0)
    unverified = shown([*searching, status("done", 1.0)])
    assert unverified["shown_last"] == 4.0
    assert shown([status("baseline", None), status("failed", None)])["shown_last"] is None


def test_a_series_counts_the_rows_within_the_limit() -> None:
    rows = [row("a", 2.2, 2.0), row("b", 2.4, 2.0), row("c", None, 1.0), row("d", 1.0, 1.0)]
    quiet, busy = live_series(rows, 0), live_series(rows, 4)
    assert (quiet["within"], quiet["of"]) == (2, 3)
    assert (busy["within"], busy["of"]) == (3, 3)
    head = {"device": "cpu", "cores": 2, "commit": "abc", "when": "now", "command": "c"}
    page = live_page({"series": [head | quiet, head | busy]})
    assert "2 of 3 are at most 1.1" in page
    assert "3 of 3 are at most 1.25" in page


def test_totals_count_a_job_that_failed_as_no_gain() -> None:
    failed = {"kernel": "e", "seed": 0, "seconds": 3.0, "load": 1.0, "failed": "exit 3"}
    found = totals([row("a", 4.0, 2.0), row("b", None, 8.0), failed])
    assert found["speedup"] == pytest.approx(16 ** (1 / 3))
    assert found["shown over verified"] == pytest.approx(2.0)
    assert (found["failed"], found["gained"]) == (1, 2)
    assert (found["refused"]["hits"], found["refused"]["of"]) == (2, 8)
    record = {"device": "cpu", "cores": 2, "before": "abc", "commit": "def", "when": "now", "command": "c"}
    pair = {"kernel": "a", "before": failed, "after": row("a", 4.0, 2.0)}
    page = pairs_page(record | {"pairs": [pair]})
    assert "| a | before | | | | failed |" in page
    assert "| a | after | 4.00x | 2.00x | 2.00 |" in page
    assert "- a, after: 1 at check: wrong" in page


def test_a_whole_job_runs_on_the_tree_that_is_named(
    mirrors: Path, tmp_path: Path, opencl_device: DeviceInfo
) -> None:
    mine = Kernel("sgemm", "nobody/mine", "HEAD", ("a.cl",), "kernel.cl")
    (tmp_path / "job").mkdir()
    path = lay_out(mine, mirrors, tmp_path / "job", 3, HANGS_S)
    job = yaml.safe_load(path.read_text())
    job["workloads"] = [{"dimensions": {"m": 64, "n": 64, "k": 16}}]
    # It ends by its trials, however busy the machine is.
    job["budget"]["trials"] = 2
    path.write_text(yaml.safe_dump(job))
    found = tuned(path, ROOT, tmp_path / "job", HANGS_S)
    assert found["state"] == "done", found
    assert found["speedup"] >= 1
    assert 1 <= found["trials"] <= 2
    assert found["feasible"] > 2


def test_a_tree_that_holds_no_package_is_not_taken_for_another(mirrors: Path, tmp_path: Path) -> None:
    mine = Kernel("sgemm", "nobody/mine", "HEAD", ("a.cl",), "kernel.cl")
    (tmp_path / "job").mkdir()
    job = lay_out(mine, mirrors, tmp_path / "job", 3, 4)
    written = yaml.safe_load(job.read_text())
    assert (written["seed"], written["budget"]) == (3, {"seconds": 4})
    # The job cannot run: what is asked is where the packages come from.
    job.write_text(json.dumps({"name": "nothing"}))
    with pytest.raises(RuntimeError, match="not of the tree"):
        tuned(job, tmp_path / "elsewhere", tmp_path / "job", 1)


def test_an_older_tree_is_the_files_of_its_commit(tmp_path: Path) -> None:
    tree = older_tree("HEAD", tmp_path / "tree")
    assert (tree / "warpsmith" / "__init__.py").exists()
    assert not (tree / ".git").exists()
