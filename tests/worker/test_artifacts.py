"""Compiled kernels that are kept: the same thing back, or nothing."""

import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from warpsmith.backends.cuda import toolkit
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts, Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.testing.jobs import DEVICE, scale_job
from worker.device.compile_cache import ArtifactStore, CachedCompiler, artifact_key
from worker.works.trial_reuse import reuse_key

JOB = scale_job()
TEMPLATE = Template(kernel=JOB.kernel, space=JOB.space)
BINARY = bytes(range(256)) * 40
MADE = Compiled(BINARY, "scale", CompileFacts(seconds=0.5, registers=7), "a warning\n", ("counter",))


def kernel(block: int = 64, **changes: Any) -> ConfiguredKernel:
    configured = TEMPLATE.configured({"BLOCK": block, "PER": 1})
    return configured.model_copy(update={"kernel": configured.kernel.model_copy(update=changes)})


class Compiler:
    """Counts; rejects blocks of 32."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        block = int(kernel.configuration["BLOCK"])
        self.asked.append(block)
        future: Future[Compiled | Rejected] = Future()
        future.set_result(MADE if block != 32 else Rejected(stage=Stage.COMPILE, reason="no"))
        return future


def store(folder: Path, limit_bytes: int = 1 << 20) -> ArtifactStore:
    return ArtifactStore(folder / "artifacts", limit_bytes)


def test_what_was_compiled_once_is_read_by_every_worker(tmp_path: Path) -> None:
    inner = Compiler()
    first, second = (CachedCompiler(inner, store(tmp_path)) for _ in range(2))
    assert first.submit(kernel(), DEVICE).result() == MADE
    assert second.submit(kernel(), DEVICE).result() == MADE
    assert (inner.asked, first.hits, second.hits) == ([64], 0, 1)

    assert not list((tmp_path / "artifacts").glob("*/.new-*"))


def test_what_was_rejected_is_compiled_again(tmp_path: Path) -> None:
    inner = Compiler()
    compiler = CachedCompiler(inner, store(tmp_path))
    for _ in range(2):
        assert isinstance(compiler.submit(kernel(32), DEVICE).result(), Rejected)
    assert inner.asked == [32, 32]


def test_the_key_is_of_all_that_a_binary_is_made_from() -> None:
    same = artifact_key(kernel(), DEVICE)
    assert same is not None and same == artifact_key(kernel(), DEVICE)
    others = [
        artifact_key(kernel(128), DEVICE),
        artifact_key(kernel(source="void g();"), DEVICE),
        artifact_key(kernel(entry="other"), DEVICE),
        artifact_key(kernel(files={"a.h": ""}), DEVICE),
        artifact_key(kernel(files={"a.h": "int a;"}), DEVICE),
        artifact_key(kernel(options=("-cl-fast-relaxed-math",)), DEVICE),
        artifact_key(kernel(), DEVICE.model_copy(update={"driver": "2"})),
        artifact_key(kernel(), DEVICE.model_copy(update={"architecture": "x"})),
        artifact_key(kernel(), DEVICE.model_copy(update={"name": "x"})),
        artifact_key(kernel(), DEVICE.model_copy(update={"compiler": "OpenCL 3.0 PoCL, LLVM 14"})),
        artifact_key(kernel(), DEVICE.model_copy(update={"compiler": "OpenCL 3.0 PoCL, LLVM 15"})),
    ]
    assert len({same, *others}) == len(others) + 1
    assert artifact_key(kernel(includes=("cutlass",)), DEVICE) is None


@pytest.mark.parametrize("backend", [Backend.CUDA, Backend.HIP])
@pytest.mark.parametrize("replaced", ["nvcc", "libnvrtc.so.12"])
def test_another_compiler_makes_other_keys(
    backend: Backend, replaced: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A toolkit that is replaced in place keeps its paths."""
    toolkit_home(tmp_path, "1")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    keys = set()
    for version in "112":
        toolkit_home(tmp_path, version, replaced)
        toolkit._libraries.cache_clear()  # as a new process has it
        keys.add(artifact_key(kernel(backend=backend), DEVICE))
        keys.add(
            reuse_key(JOB, TEMPLATE.model_copy(update={"kernel": kernel(backend=backend).kernel}), "t", "d")
        )
    toolkit._libraries.cache_clear()
    assert len(keys) == 4


def toolkit_home(folder: Path, version: str, only: str = "") -> None:
    """A CUDA toolkit whose compilers are of a version."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "lib64").mkdir(exist_ok=True)
    if only in ("", "nvcc"):
        (folder / "bin" / "nvcc").write_text(f"#!/bin/sh\necho release {version}\n")
        (folder / "bin" / "nvcc").chmod(0o755)
        os.utime(folder / "bin" / "nvcc", (int(version), int(version)))
    if only in ("", "libnvrtc.so.12"):
        (folder / "lib64" / "libnvrtc.so.12").unlink(missing_ok=True)
        (folder / "lib64" / f"libnvrtc.so.12.{version}").touch()
        (folder / "lib64" / "libnvrtc.so.12").symlink_to(f"libnvrtc.so.12.{version}")
        (folder / "lib64" / f"libnvrtc.so.12.{int(version) - 1}").unlink(missing_ok=True)


@pytest.mark.parametrize("spoil", [b"", b"x", b"0" * 64 + b"\n{}\n"], ids=["empty", "short", "digest"])
def test_a_damaged_file_counts_as_none_and_is_replaced(tmp_path: Path, spoil: bytes) -> None:
    inner = Compiler()
    compiler = CachedCompiler(inner, store(tmp_path))
    compiler.submit(kernel(), DEVICE)
    (path,) = (tmp_path / "artifacts").glob("??/*")
    path.write_bytes(spoil)
    assert compiler.submit(kernel(), DEVICE).result() == MADE
    assert inner.asked == [64, 64]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert compiler.submit(kernel(), DEVICE).result() == MADE
    assert inner.asked == [64, 64, 64]
    assert compiler.submit(kernel(), DEVICE).result() == MADE
    assert inner.asked == [64, 64, 64]


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    kept = store(tmp_path, limit_bytes=5 * len(BINARY))
    for n in range(9):
        kept._sweep_at = 0.0 if n == 8 else float("inf")
        kept.put(f"{n:02}{n}", MADE)
        if n < 8:
            os.utime(tmp_path / "artifacts" / f"{n:02}" / f"{n:02}{n}", (n, n))
    left = {p.name for p in (tmp_path / "artifacts").glob("??/*")}
    assert left < {f"{n:02}{n}" for n in range(9)}
    assert {"088", "077"} <= left and "000" not in left


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    inner = Compiler()
    compiler = CachedCompiler(inner, store(tmp_path))
    for _ in range(2):
        assert compiler.submit(kernel(), DEVICE).result() == MADE
    assert inner.asked == [64, 64]
