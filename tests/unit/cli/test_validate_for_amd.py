"""`warpsmith validate --arch gfx942`: a HIP job is compiled for a device that is not there, and never run."""

import re
from pathlib import Path
from typing import Any

import pytest

from testbed.clang import ADVICE, clang_path
from testbed.servers import give_up
from tests.unit.cli.test_validate import CUDA_SOURCE, FIELDS, ran, written
from warpsmith.device_checks.absent_devices import absent_device, any_amd_device
from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.outcome import CompileFacts
from warpsmith.domain.templates.space import Space
from warpsmith.domain.templates.template import Template
from warpsmith.search.spaces.feasible_set import enumerate_space
from warpsmith.search.spaces.launch_prior import IDLE_LANES, launched
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.analysis.search_facts import occupancy_of

BLOCKS = {"name": "BLOCK", "values": [32, 64, 96, 128], "default": 64}
WHOLE_WAVES = {"expression": "BLOCK % device.warp_size == 0"}


def hip_job(folder: Path, source: str = CUDA_SOURCE, **changes: Any) -> Path:
    kernel = FIELDS["kernel"] | {"backend": "hip", "source": source}
    path = written(folder, kernel=kernel, parameters=[BLOCKS], constraints=[WHOLE_WAVES], **changes)
    path.write_text(path.read_text().replace("BLOCK * PER", "BLOCK"))
    return path


@pytest.fixture
def _clang() -> None:
    if clang_path() is None:
        give_up(ADVICE)


@pytest.mark.usefixtures("_clang")
def test_a_hip_job_and_its_template_are_compiled_and_nothing_is_said_to_have_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, hip_job(tmp_path), "--compile", "--arch", "gfx942")
    assert code == 0, err
    (line,) = [line for line in out.splitlines() if "gfx942" in line]
    resources = r"\(\d+ vector registers, 0 bytes of LDS, 0 bytes of registers spilled\)"
    words = rf"compiled for gfx942; not run on AMD hardware {resources}, and so is its template {resources}"
    assert re.fullmatch(words, line.strip())
    assert "launched" not in out


@pytest.mark.usefixtures("_clang")
def test_what_does_not_compile_for_it_is_placed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hip_job(tmp_path, CUDA_SOURCE.replace("2.0f", "twice"))
    code, _, err = ran(capsys, path, "--compile", "--arch", "gfx942")
    assert code == 2
    assert (
        "kernel.source: does not compile: kernel.hip:4:21: error: use of undeclared identifier 'twice'" in err
    )
    code, _, err = ran(capsys, hip_job(tmp_path), "--compile", "--arch", "gfx999")
    assert code == 2
    assert re.search(r"kernel\.backend: --arch: clang \S+ knows no gfx999; it knows .*gfx942", err)


def test_a_cuda_job_is_not_compiled_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hip_job(tmp_path)
    path.write_text(path.read_text().replace("backend: hip", "backend: cuda"))
    code, _, err = ran(capsys, path, "--compile", "--arch", "gfx942")
    assert code == 2
    assert "kernel.backend: --arch gfx942 is an architecture of AMD, and cuda is not compiled for it" in err


@pytest.mark.parametrize(("arch", "count"), [("gfx942", 2), ("sm_90", 4)])
def test_constraints_see_the_wave_of_the_architecture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arch: str, count: int
) -> None:
    code, out, err = ran(capsys, hip_job(tmp_path), "--arch", arch)
    assert code == 0, err
    assert f"  configurations of its own tunables: {count}\n" in out


@pytest.mark.parametrize(("block", "fits"), [(1024, True), (1025, False)])
def test_the_launch_is_held_against_its_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], block: int, fits: bool
) -> None:
    path = hip_job(tmp_path)
    path.write_text(path.read_text().replace("- BLOCK\n", f"- '{block}'\n"))
    code, _, err = ran(capsys, path, "--arch", "gfx942")
    assert (f"block x is {block}; gfx942 takes 1 to 1024" in err) is not fits
    assert (code == 0) is fits


@pytest.mark.parametrize(
    ("backend", "arch", "warp"),
    [
        (Backend.HIP, "gfx942", 64),
        (Backend.HIP, "gfx90a", 64),
        (Backend.HIP, "gfx1100", 32),
        (Backend.HIP, "sm_90", 32),
        (Backend.CUDA, "sm_90", 32),
        (Backend.CUDA, "gfx942", None),
        (Backend.TRITON, "gfx942", None),
        (Backend.OPENCL, "sm_90", None),
    ],
)
def test_the_device_that_is_compiled_for(backend: Backend, arch: str, warp: int | None) -> None:
    device = absent_device(backend, arch)
    assert (device and device.limits.warp_size) == warp


def test_a_search_expects_idle_lanes_of_waves_of_64() -> None:
    device = any_amd_device("gfx942")
    space = Space.model_validate({"parameters": [BLOCKS]})
    launch = Launch(block=(Expression("BLOCK"),), grid=(Expression("ceil_div(n, BLOCK)"),))
    scopes = [device.scope() | {"n": 4096}]
    feasible = enumerate_space(space, scopes)
    waves, warps = (
        launched(launch, feasible, scopes, device.limits.warp_size),
        launched(launch, feasible, scopes, 32),
    )
    assert waves is not None and warps is not None
    for block, share in ((32, 1 / 2), (64, 0), (96, 1 / 4), (128, 0)):
        row = feasible.index({"BLOCK": block})
        assert row is not None
        assert waves.expected[row] - warps.expected[row] == pytest.approx(IDLE_LANES * share)


def test_occupancy_is_that_of_its_compute_units() -> None:
    device, job = any_amd_device("gfx942"), scale_job()
    kernel = Template(kernel=job.kernel, space=job.space).configured(job.space.defaults)
    size = launch_size(kernel, job.workloads[0], device)
    assert size.block == (64, 1, 1)
    assert occupancy_of(size, CompileFacts(registers=512), device) == 4 / 32
    assert occupancy_of(size, CompileFacts(registers=64, static_shared_bytes=64 << 10), device) == 1 / 32
