"""Compilers, the OpenCL device of this machine and one harness for the tests of this folder."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.first_hour import door_corpora
from tests.adversarial.conftest import harness, opencl_device, pool
from warpsmith.domain.device import Backend, DeviceInfo

__all__ = ["harness", "opencl_device", "pool"]


@pytest.fixture(scope="session")
def opencl_info(opencl_device: DeviceInfo) -> DeviceInfo:
    """The same device by the name that tests of the sandbox give it."""
    return opencl_device


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
