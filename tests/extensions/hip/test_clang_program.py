"""Which clang is taken, and what is said where there is none."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.clang import CLANG
from testbed.clang import PACKAGES, clang_path
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.clang_program import ADVICE, find_clang
from warpsmith.extensions.hip.rocm_paths import device_library, rocm_headers, rocm_roots


def program(path: Path, knows: str, linker: str = "/usr/bin/lld") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cpus = f'printf "clang version 19.1\\n\\t{knows}\\n"'
    path.write_text(f"#!/bin/sh\ncase $1 in -print-prog-name=lld) echo {linker};; *) {cpus};; esac\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def only_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ROCM_PATH", raising=False)
    find_clang.cache_clear()
    yield
    find_clang.cache_clear()


@pytest.fixture
def no_rocm() -> None:
    if rocm_roots():
        pytest.skip("ROCm is installed here")


@pytest.mark.usefixtures("no_rocm")
def test_the_newest_that_knows_the_architecture_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "clang-16", "gfx942")
    program(tmp_path / "clang", "gfx90a")
    with pytest.raises(Unavailable, match="no clang that knows gfx942"):
        find_clang()
    assert clang_path() is None
    wanted = program(tmp_path / "clang-18", "gfx942")
    assert find_clang().path == wanted
    find_clang.cache_clear()
    newer = program(tmp_path / "clang++-19", "gfx942")
    assert (find_clang().path, find_clang().version) == (newer, "19.1")
    assert clang_path() == str(newer)


@pytest.mark.usefixtures("no_rocm")
def test_one_without_a_linker_is_not_taken(tmp_path: Path) -> None:
    program(tmp_path / "clang-19", "gfx942", linker="lld")
    with pytest.raises(Unavailable, match="clang-19 has no lld"):
        find_clang()


def test_rocms_own_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "clang-19", "gfx942")
    theirs = program(tmp_path / "rocm/llvm/bin/clang++", "gfx942")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    assert find_clang().path == theirs


def test_rocms_headers_and_library_are_found_as_far_as_they_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    library = tmp_path / "rocm/amdgcn/bitcode"
    library.mkdir(parents=True)
    for name in ("ocml.bc", "oclc_abi_version_500.bc"):
        (library / name).touch()
    assert device_library("gfx942") != library
    (library / "oclc_isa_version_942.bc").touch()
    assert device_library("gfx942") == library
    assert device_library("gfx90a") != library
    header = tmp_path / "rocm/include/hip/hip_runtime.h"
    header.parent.mkdir(parents=True)
    header.touch()
    assert rocm_headers() == tmp_path / "rocm/include"


def test_the_script_installs_what_the_advice_names() -> None:
    assert CLANG.advice == ADVICE
    assert all(name in ADVICE for name in PACKAGES)
