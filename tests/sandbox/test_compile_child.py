"""The compile pool: bad, hostile and endless sources give a value, tell nothing and harm nothing."""

import os
import re
import secrets
import shutil
import signal
import time
from pathlib import Path

import pytest

from testbed.child_processes import leaders
from testbed.deadlines import HANGS_S, stretched
from tests.sandbox.conftest import Devices, PoolMaker
from tests.sandbox.kernels import SCALE, built, group_of, kernel, rejected, source, wait_until
from warpsmith.child_environment import child_environment
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage
from warpsmith.sandbox import CompilePool
from warpsmith.sandbox.hosts import compile_host
from warpsmith.sandbox.transport.process import ChildProcess

SECRET = f"WARPSMITH_TEST_{secrets.token_hex(8)}"


def _told(result: Rejected) -> str:
    return result.reason + result.log


def test_a_good_source_compiles(pool: CompilePool, device: DeviceInfo) -> None:
    result = built(pool, device, source(device.backend, SCALE))
    assert result.entry == "f"
    assert result.facts.binary_bytes == len(result.binary) > 0
    assert result.facts.seconds > 0


def test_a_syntax_error_is_a_rejection_with_the_compilers_words(
    pool: CompilePool, device: DeviceInfo
) -> None:
    result = rejected(pool, device, source(device.backend, "y[i] = no_such_thing;"))
    assert result.stage is Stage.COMPILE
    assert "no_such_thing" in result.reason
    assert "no_such_thing" in result.log
    # Equal errors read equal: no folder, no address and no process of this machine is in them.
    assert result == rejected(pool, device, source(device.backend, "y[i] = no_such_thing;"))
    assert not re.search(r"/tmp|tempfile|0x[0-9a-f]{6}|site-packages", _told(result))


def test_a_missing_entry_is_a_rejection(pool: CompilePool, device: DeviceInfo) -> None:
    result = rejected(pool, device, source(device.backend, SCALE), entry="g")
    assert result.stage is Stage.COMPILE
    assert "g" in result.reason or "g" in result.log


@pytest.mark.parametrize("name", ["absolute", "relative", "system", "parent"])
def test_a_file_outside_cannot_be_included(
    pool: CompilePool, device: DeviceInfo, tmp_path: Path, permitted: Path, name: str
) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text(f"{SECRET} is the key;\n")
    path = {
        "absolute": str(secret),
        "relative": os.path.relpath(secret, permitted),
        "system": "/etc/passwd",
        "parent": f"/proc/{os.getpid()}/environ",
    }[name]
    text = source(device.backend, SCALE, f'#include "{path}"')
    result = rejected(pool, device, text, includes=["shared"])
    assert SECRET not in _told(result)
    assert "root:" not in _told(result)
    assert "PATH=" not in _told(result)


def test_the_folders_of_the_python_path_are_not_readable(
    make_pool: PoolMaker, device: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.py").write_text(f"{SECRET} is the key;\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = make_pool(timeout_s=HANGS_S)
    text = source(device.backend, SCALE, f'#include "{tmp_path}/settings.py"')
    assert SECRET not in _told(rejected(pool, device, text))


def test_a_permitted_folder_can_be_included_and_no_other(
    pool: CompilePool, device: DeviceInfo, permitted: Path
) -> None:
    text = source(device.backend, "y[i] = FACTOR * x[i];", '#include "shared.h"')
    built(pool, device, text, includes=["shared"])
    assert "shared.h" in _told(rejected(pool, device, text))
    result = rejected(pool, device, text, includes=["other"])
    assert "'other' is not permitted" in result.reason
    assert "permitted: shared" in result.reason
    assert str(permitted) not in _told(result)


SENT = {
    "lib/scale.h": '#pragma once\n#include "../factors/two.h"\n#include <again.h>\n',
    "factors/two.h": "#define FACTOR 2.0f\n",
    "other/again.h": "#define TWICE(v) (FACTOR * (v))\n",
}


@pytest.mark.parametrize("compiler", ["auto", "nvcc"])
def test_headers_that_came_with_a_kernel_are_included(
    pool: CompilePool, device: DeviceInfo, compiler: str
) -> None:
    text = source(device.backend, "y[i] = TWICE(x[i]);", '#include "scale.h"\n#include <factors/two.h>')
    sent = {"files": SENT, "include_dirs": ["lib", "other"], "compiler": compiler}
    if compiler == "nvcc" and (device.backend is not Backend.CUDA or not shutil.which("nvcc")):
        return
    built(pool, device, text, **sent)
    assert "again.h" in _told(rejected(pool, device, text, **sent | {"include_dirs": ["lib"]}))
    faulty = SENT | {"other/again.h": "#define TWICE(v) no_such_thing(v)\nint broken(no_type a);\n"}
    result = rejected(pool, device, text, **sent | {"files": faulty})
    assert "again.h" in _told(result)
    assert result == rejected(pool, device, text, **sent | {"files": faulty})
    assert not re.search(r"/tmp|tempfile|site-packages", _told(result))


def test_no_path_of_a_header_leads_out_of_the_private_folder(pool: CompilePool, device: DeviceInfo) -> None:
    good = kernel(device.backend, source(device.backend, SCALE))
    outside = good.kernel.model_copy(update={"files": {"../outside.h": "int a;"}})
    result = pool.submit(good.model_copy(update={"kernel": outside}), device).result(HANGS_S)
    assert isinstance(result, Rejected)
    assert "the compiler was ended" in result.reason


def test_assembly_in_a_header_that_was_sent_is_refused(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    text = source(Backend.OPENCL, SCALE, '#include "a.h"')
    hidden = {"a.h": '#undef asm\nvoid f(void) { asm("nop"); }\n'}
    assert "assembly" in rejected(pool, opencl_info, text, files=hidden, include_dirs=["."]).reason


def test_nothing_of_the_parents_environment_reaches_a_compiler(
    make_pool: PoolMaker, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPSMITH_API_KEY", SECRET)
    monkeypatch.setenv("CPATH", "/etc")
    pool = make_pool(timeout_s=HANGS_S)
    result = rejected(pool, device, source(device.backend, SCALE, '#include "/proc/self/environ"'))
    assert SECRET not in _told(result)
    assert "passwd" in _told(rejected(pool, device, source(device.backend, SCALE, "#include <passwd>")))


@pytest.mark.parametrize("backend", [Backend.OPENCL, Backend.CUDA, None])
def test_a_child_sees_only_the_named_variables(
    backend: Backend | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPSMITH_API_KEY", SECRET)
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    child = ChildProcess("tests.sandbox.children", {"do": "environment"}, child_environment(backend))
    try:
        seen, _ = child.channel.receive(time.monotonic() + HANGS_S)
    finally:
        child.kill()
    assert SECRET not in str(seen)
    assert ("CUDA_HOME" in seen) is (backend is not Backend.OPENCL)
    assert {"PATH", "TMPDIR", "HOME"} <= set(seen)
    assert seen["HOME"] == str(child.private)
    assert not child.private.exists()


def test_a_source_with_host_headers_takes_nvcc_under_the_same_confinement(
    pool: CompilePool, devices: Devices, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text(f"{SECRET} is the key;\n")
    text = source(Backend.CUDA, SCALE, "#include <regex>")
    if shutil.which("nvcc"):
        assert built(pool, devices[Backend.CUDA], text).entry == "f"
    else:
        assert "regex" in rejected(pool, devices[Backend.CUDA], text).log
    hostile = source(Backend.CUDA, SCALE, f'#include "{secret}"')
    result = rejected(pool, devices[Backend.CUDA], hostile, compiler="nvcc")
    assert "secret.h" in result.log or "none" in result.reason
    assert SECRET not in _told(result)


def _macro_bomb(backend: Backend) -> str:
    doubling = "".join(f"#define A{k + 1} A{k} A{k}\n" for k in range(40))
    return source(backend, "y[i] = x[i] + (0 A40);", f"#define A0 +1\n{doubling}")


def _template_bomb(backend: Backend) -> str:
    bomb = (
        "template <long A, long B> struct T { static const long v = T<A-1, 2*B>::v + T<A-1, 2*B+1>::v; };\n"
    )
    end = "template <long B> struct T<0, B> { static const long v = 1; };\n"
    return source(backend, "y[i] = T<40, 1>::v;", bomb + end)


BOMBS = {
    "opencl-macros": (Backend.OPENCL, _macro_bomb(Backend.OPENCL), "auto"),
    "cuda-macros": (Backend.CUDA, _macro_bomb(Backend.CUDA), "auto"),
    "cuda-templates": (Backend.CUDA, _template_bomb(Backend.CUDA), "auto"),
}
if shutil.which("nvcc"):
    # nvcc starts programs of its own, which must end as well.
    BOMBS["nvcc-templates"] = (Backend.CUDA, _template_bomb(Backend.CUDA), "nvcc")


@pytest.mark.parametrize(("backend", "bomb", "compiler"), BOMBS.values(), ids=list(BOMBS))
def test_a_compile_bomb_ends_at_its_deadline_and_the_pool_goes_on(
    make_pool: PoolMaker, devices: Devices, backend: Backend, bomb: str, compiler: str
) -> None:
    limit_s = stretched(4)
    pool, others = make_pool(timeout_s=limit_s), leaders("compile_child")
    future = pool.submit(kernel(backend, bomb, compiler=compiler), devices[backend])
    wait_until(lambda: len(leaders("compile_child") - others) == 1)
    (leader,) = leaders("compile_child") - others
    wait_until(lambda: future.done() or len(group_of(leader)) >= (4 if compiler == "nvcc" else 2))
    result = future.result(HANGS_S)
    assert isinstance(result, Rejected)
    assert f"did not finish within {limit_s:.3g} s" in result.reason
    wait_until(lambda: not group_of(leader))
    built(pool, devices[backend], source(backend, SCALE))


@pytest.mark.parametrize("name", ["opencl-macros", "cuda-templates"])
def test_a_compile_bomb_ends_at_its_memory_limit(make_pool: PoolMaker, devices: Devices, name: str) -> None:
    backend, bomb, _ = BOMBS[name]
    pool = make_pool(timeout_s=HANGS_S, memory_bytes=850 << 20)
    result = rejected(pool, devices[backend], bomb)
    assert "out of memory" in _told(result)
    built(pool, devices[backend], source(backend, SCALE))


def test_an_include_without_end_is_a_rejection(pool: CompilePool, device: DeviceInfo) -> None:
    text = source(device.backend, SCALE, '#include "again.h"')
    assert "again.h" in _told(rejected(pool, device, text, includes=["shared"]))


def test_long_compiler_output_is_cut(pool: CompilePool, device: DeviceInfo) -> None:
    long_name = "undeclared_" + "a" * 20_000
    result = rejected(pool, device, source(device.backend, f"y[i] = {long_name};"))
    assert 1000 < len(result.log) <= MAX_LOG_CHARACTERS
    assert 0 < len(result.reason) <= 2000
    warnings = "".join(f"#warning this is warning {k}\n" for k in range(3000))
    assert len(built(pool, device, source(device.backend, SCALE, warnings)).log) <= MAX_LOG_CHARACTERS


def test_a_source_beyond_the_limit_is_not_compiled(pool: CompilePool, device: DeviceInfo) -> None:
    configured = kernel(device.backend, source(device.backend, SCALE))
    blown_up = configured.model_copy(update={"defines": {"A": "1" * (2 * MAX_SOURCE_BYTES)}})
    result = pool.submit(blown_up, device).result(stretched(10))
    assert isinstance(result, Rejected)
    assert f"at most {2 * MAX_SOURCE_BYTES}" in result.reason


@pytest.mark.parametrize(
    "option",
    [
        "-I/etc",
        "-include/etc/passwd",
        "--pre-include=/etc/passwd",
        "-Xclang",
        "-fplugin=/tmp/evil.so",
        "-ccbin=/tmp/evil",
        "--options-file=/etc/passwd",
        "@/etc/passwd",
        "-o/tmp/x",
        "-DA=$(id)",
        "-DA=1 -I/etc",
        "-DA=1\n",
        "-std=c++17 -I/etc",
        "",
    ],
)
def test_options_off_the_list_are_refused(pool: CompilePool, device: DeviceInfo, option: str) -> None:
    result = rejected(pool, device, source(device.backend, SCALE), options=[option])
    assert "not allowed" in result.reason
    assert repr(option) in result.reason


def test_options_on_the_list_reach_the_compiler(pool: CompilePool, device: DeviceInfo) -> None:
    text = source(device.backend, "y[i] = MULTIPLE * x[i];")
    fast = "-cl-fast-relaxed-math" if device.backend is Backend.OPENCL else "--use_fast_math"
    built(pool, device, text, options=[fast, "-DMULTIPLE=3.0f"])
    assert "MULTIPLE" in _told(rejected(pool, device, text, options=[fast]))


def test_the_pool_survives_the_death_of_its_waiting_child(make_pool: PoolMaker, device: DeviceInfo) -> None:
    pool = make_pool(timeout_s=HANGS_S)
    built(pool, device, source(device.backend, SCALE))
    waiting, child = _waiting(pool), pool._idle.queue[-1][1]
    os.kill(waiting, signal.SIGKILL)
    wait_until(lambda: not child.alive)
    built(pool, device, source(device.backend, SCALE))
    assert _waiting(pool) != waiting


def test_a_child_killed_at_work_is_a_rejection_and_leaves_nothing(
    make_pool: PoolMaker, devices: Devices
) -> None:
    pool, device = make_pool(timeout_s=stretched(20)), devices[Backend.CUDA]
    built(pool, device, source(Backend.CUDA, SCALE))
    leader = _waiting(pool)
    wait_until(lambda: group_of(leader) == [leader])
    future = pool.submit(kernel(Backend.CUDA, _template_bomb(Backend.CUDA)), device)
    wait_until(lambda: len(group_of(leader)) == 2)
    (compiler,) = set(group_of(leader)) - {leader}
    os.kill(compiler, signal.SIGKILL)
    result = future.result(HANGS_S)
    assert isinstance(result, Rejected)
    assert "signal 9" in result.reason
    wait_until(lambda: not group_of(leader))
    others = leaders("compile_child")
    future = pool.submit(kernel(Backend.CUDA, _template_bomb(Backend.CUDA)), device)
    wait_until(lambda: len(leaders("compile_child") - others) == 1)
    (leader,) = leaders("compile_child") - others
    os.kill(leader, signal.SIGKILL)
    result = future.result(HANGS_S)
    assert isinstance(result, Rejected)
    assert "SIGKILL" in result.log
    wait_until(lambda: not group_of(leader))
    built(pool, device, source(Backend.CUDA, SCALE))


def test_a_closed_pool_leaves_no_process_and_no_folder(make_pool: PoolMaker, device: DeviceInfo) -> None:
    pool = make_pool(timeout_s=HANGS_S)
    built(pool, device, source(device.backend, SCALE))
    leader = _waiting(pool)
    folder = pool._idle.queue[0][1].private
    wait_until(lambda: group_of(leader) == [leader])
    assert folder.exists()
    pool.close()
    assert not group_of(leader)
    assert not folder.exists()


@pytest.mark.parametrize(
    "lie",
    [
        {},
        {"entry": "f"},
        {"entry": "f", "facts": {}, "log": ""},
        {"entry": "f", "facts": [], "log": ""},
        {"rejected": "no"},
        {"rejected": {"stage": "nowhere", "reason": ""}},
    ],
    ids=str,
)
def test_a_reply_that_is_none_is_a_rejection(
    make_pool: PoolMaker, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch, lie: dict[str, object]
) -> None:
    def liar(
        module: str, argument: object, environment: dict[str, str], limit: int, **_: object
    ) -> ChildProcess:
        return ChildProcess("tests.sandbox.children", {"do": "lie", "reply": lie}, environment, limit)

    monkeypatch.setattr(compile_host, "ChildProcess", liar)
    result = rejected(make_pool(timeout_s=HANGS_S), device, source(device.backend, SCALE))
    assert "not a reply" in result.reason


def _waiting(pool: CompilePool) -> int:
    """The process that waits for the next source."""
    return pool._idle.queue[-1][1]._process.pid


def test_as_many_children_are_started_early_as_are_asked_for() -> None:
    pool = CompilePool(2)
    try:
        pool.warm(Backend.OPENCL, 1)
        wait_until(lambda: pool._idle.qsize() == 1)
        pool.warm(Backend.OPENCL)
        wait_until(lambda: pool._idle.qsize() == 3)
        assert all(child.alive for _, child in pool._idle.queue)
    finally:
        pool.close()
