"""Compilers, the OpenCL device of this machine and one harness for the tests of this folder."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.first_hour import door_corpora
from benchmarks.opencl_corpus.sources import Project
from benchmarks.production.sources import PROJECTS
from tests.adversarial.conftest import harness, opencl_device, pool
from tests.benchmarks.test_opencl_corpus import SOURCE
from warpsmith.domain.device import Backend

EXTENTS = range(1, 21)
"""Values of both parameters of the recorded space."""
__all__ = ["harness", "opencl_device", "pool"]


@pytest.fixture
def mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Mirrors of one repository, with a kernel in OpenCL and one in CUDA that tell all of themselves."""
    tree = tmp_path / "tree"
    tree.mkdir()
    body = "if (i < n) y[i] = 2 * x[i]; }\n"
    heads = {
        "a.cl": "__kernel void twice(__global const float *x, __global float *y, int n) "
        "{ int i = get_global_id(0); ",
        "b.cu": "__global__ void twice(const float *x, float *y, int n) "
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; ",
    }
    for name, head in heads.items():
        (tree / name).write_text(head + body)
    place = tmp_path / "mirrors" / "nobody+nothing" / "repo"
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@n"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=tree, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(tree), str(place)], check=True)
    mine = (
        door_corpora.Project("nobody/nothing", "HEAD", r"a\.cl"),
        door_corpora.Project("nobody/nothing", "HEAD", r"b\.cu", backend=Backend.CUDA),
    )
    monkeypatch.setitem(door_corpora.CORPORA, "known", mine)
    return tmp_path / "mirrors"


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    """A project of every name, with a kernel and a header of a few lines."""
    for project in PROJECTS:
        folder = tmp_path / "checkouts" / project.name / "include" / project.name
        folder.mkdir(parents=True)
        text = "template <typename T> __global__ void twice(T* x, int n) { x[threadIdx.x] *= 2; }\n"
        (folder / "own.cuh").write_text("#pragma once\n" + text)
    return tmp_path / "checkouts"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of one project with OpenCL kernels of this test."""
    (tmp_path / "corpus" / "mine").mkdir(parents=True)
    (tmp_path / "corpus" / "mine" / "a.cl").write_text(SOURCE)
    mine = (Project("mine", "nobody/nothing", "0" * 40, ".", ("-DSCALE=2",)),)
    monkeypatch.setattr("benchmarks.opencl_corpus.bindings.PROJECTS", mine)
    return tmp_path / "corpus"


@pytest.fixture
def spaces(tmp_path: Path) -> Path:
    """A kernel recorded on two devices, with a restriction; larger than the largest budget of the bench."""
    (tmp_path / "spaces").mkdir()
    entries = {
        f"{bx},{tile}": {"block_size_x": bx, "tile_size": tile, "time": bx / tile + tile}
        for bx in EXTENTS
        for tile in EXTENTS
        if bx * tile <= 200
    }
    params = {"block_size_x": list(EXTENTS), "tile_size": list(EXTENTS)}
    space = {"tune_params": params, "restrictions": ["block_size_x * tile_size <= 200"], "cache": entries}
    for device in ("A", "B"):
        with gzip.open(tmp_path / "spaces" / f"own-{device}.json.gz", "wt") as stream:
            json.dump(space, stream)
    return tmp_path / "spaces"
