"""NumPy references in their own child: exact results, clear errors, and no way out."""

import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from testbed.deadlines import HANGS_S, stretched
from tests.sandbox.kernels import plan
from warpsmith.child_environment import child_environment
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, WorkloadPlan
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.sandbox import ReferenceRunner
from warpsmith.sandbox.hosts import reference_host
from warpsmith.sandbox.transport.process import ChildProcess
from warpsmith.verify.dtypes import wanted_dtype
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import Array

RUNNER = ReferenceRunner(timeout_s=HANGS_S)
SECRET = secrets.token_hex(16)


def _compute(
    body: str, of: WorkloadPlan | None = None, runner: ReferenceRunner = RUNNER
) -> Mapping[str, Array]:
    text = "import os, socket, sys, time\ndef reference(inputs, dims):\n"
    text += "".join(f"    {line}\n" for line in body.splitlines())
    workload = of or plan(100)
    return runner.numpy(text, "reference", workload, {"n": 100})


def _refused(body: str, runner: ReferenceRunner = RUNNER) -> str:
    with pytest.raises(InvalidInput) as caught:
        _compute(body, runner=runner)
    assert caught.value.field == "reference"
    assert SECRET not in str(caught.value)
    return caught.value.message


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT64], ids=str)
def test_floats_are_computed_in_double_precision(dtype: Dtype) -> None:
    workload = plan(100, dtype)
    out = _compute("assert inputs['x'].dtype == np.float64\nreturn {'y': inputs['x'] / 3}", workload)["y"]
    want = draw_inputs(workload)["x"].astype(np.float64) / 3
    assert out.dtype == wanted_dtype(dtype)
    np.testing.assert_array_equal(out, want.astype(out.dtype))


@pytest.mark.parametrize(
    ("dtype", "wide"), [(Dtype.INT8, np.int64), (Dtype.INT64, np.int64), (Dtype.UINT64, np.uint64)], ids=str
)
def test_integers_are_computed_exactly(dtype: Dtype, wide: type) -> None:
    draw = Draw(distribution=Distribution.INTEGERS, low=1, high=100)
    x = BufferPlan("x", dtype, Role.INPUT, (100,), draw)
    y = BufferPlan("y", dtype, Role.OUTPUT, (100,), None)
    workload = WorkloadPlan("w", (x, y), seed=3)
    body = "return {'y': inputs['x'] * inputs['x'].dtype.type(2**53 + 1)}"
    out = _compute(body, workload)["y"]
    assert out.dtype == wide
    want = [int(v) * (2**53 + 1) for v in draw_inputs(workload)["x"]]
    assert [int(v) for v in out] == want


def test_shapes_scalars_and_dimensions_arrive_as_declared() -> None:
    x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (4, 25), None)
    state = BufferPlan("state", Dtype.FLOAT32, Role.INOUT, (25, 4), None)
    y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, (4, 25), None)
    workload = WorkloadPlan("w", (x, state, y, ScalarPlan("eps", Dtype.FLOAT32, 0.5)), seed=3)
    body = (
        "assert sorted(inputs) == ['eps', 'state', 'x'] and dims == {'n': 100}\n"
        "return {'y': inputs['x'] + inputs['eps'], 'state': inputs['state'].T.copy().T * 2}"
    )
    out = _compute(body, workload)
    drawn = {k: v.astype(np.float64) for k, v in draw_inputs(workload).items()}
    np.testing.assert_array_equal(out["y"], drawn["x"] + 0.5)
    np.testing.assert_array_equal(out["state"], drawn["state"] * 2)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return {'y': 1 / 0}", "ZeroDivisionError"),
        ("return {'y': nothing}", "nothing"),
        ("return {'z': inputs['x']}", "returned no 'y'"),
        ("return inputs['x']", "not a dict"),
        ("return {'y': inputs['x'][:50]}", "shape (50,), not (100,)"),
        ("return {'y': inputs['w']}", "'w'"),
        ("sys.exit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("os._exit(0)", "exit"),
        ("os.abort()", "SIGABRT"),
        ("return {'y': np.array(['a'] * 100)}", "y"),
        ("return {'y': np.array([object()] * 100)}", "y"),
        ("def f(k): return f(k + 1)\nf(0)", "RecursionError"),
    ],
)
def test_a_failing_function_is_the_users_to_mend(body: str, words: str) -> None:
    assert words in _refused(body)


def test_the_error_names_the_line() -> None:
    assert "line 4" in _refused("a = 1\nraise ValueError('bad')")


@pytest.mark.parametrize("source", ["def reference(:", "x = 1", "\0", "import no_such_module"])
def test_a_source_that_defines_nothing_is_the_users_to_mend(source: str) -> None:
    with pytest.raises(InvalidInput, match="reference"):
        RUNNER.numpy(source, "reference", plan(10), {})


def test_printing_does_not_disturb_the_answer() -> None:
    body = "print('x' * 200000)\nos.write(1, b'noise' * 1000)\nreturn {'y': inputs['x']}"
    assert _compute(body)["y"].size == 100


@pytest.mark.parametrize("body", ["while True: pass", "time.sleep(1000)", "import signal\nsignal.pause()"])
def test_a_function_without_end_ends_at_its_deadline(body: str) -> None:
    started = time.monotonic()
    assert "ran past 1 s" in _refused(body, ReferenceRunner(timeout_s=1))
    assert time.monotonic() - started < stretched(4)


@pytest.mark.parametrize(
    "body",
    [
        "return {'y': np.ones(1 << 28)}",
        "kept = []\nwhile True: kept.append(np.ones(1 << 22))",
        "return {'y': bytearray(2 << 30)}",
    ],
)
def test_a_memory_bomb_ends_at_its_limit(body: str) -> None:
    words = _refused(body, ReferenceRunner(timeout_s=stretched(20), memory_bytes=700 << 20))
    assert "MemoryError" in words


ATTEMPTS = (
    "open({path!r}).read()",
    "open('/etc/passwd').read()",
    "open('/proc/%d/environ' % os.getppid()).read()",
    "open({path!r}, 'w')",
    "os.listdir({folder!r})",
    "np.fromfile({path!r}, np.uint8)",
    "np.load({path!r})",
    "os.symlink({path!r}, os.environ['HOME'] + '/l') or open(os.environ['HOME'] + '/l').read()",
    "socket.create_connection(('127.0.0.1', {port}))",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_UNIX)",
    "os.fork()",
    "__import__('subprocess').run(['true'])",
    "os.kill(os.getppid(), 0)",
    "os.setsid()",
)


def test_nothing_outside_can_be_reached(tmp_path: Path) -> None:
    path = tmp_path / "secret.npy"
    path.write_text(SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {"path": str(path), "folder": str(tmp_path), "port": server.getsockname()[1]}
        lines = ["came = []"]
        for attempt in ATTEMPTS:
            lines += ["try:", f"    {attempt.format(**places)}", "    came.append('done')"]
            lines += ["except Exception as exc:", "    came.append(type(exc).__name__)"]
        words = _refused("\n".join([*lines, "raise ValueError(','.join(came))"]))
    came = words.partition("ValueError: ")[2].partition(" (")[0].split(",")
    assert dict(zip(ATTEMPTS, came, strict=True)) == dict.fromkeys(ATTEMPTS, "PermissionError")
    assert path.read_text() == SECRET


def test_the_environment_holds_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_API_KEY", SECRET)
    words = _refused("raise ValueError('<' + ' '.join(os.environ) + '>' + repr(list(os.environ.values())))")
    names = words.partition("<")[2].partition(">")[0].split()
    assert set(names) <= {*child_environment(None), "HOME", "TMPDIR"}
    assert "HOME" in names


def test_a_reference_works_in_a_folder_of_its_own() -> None:
    words = _refused("raise ValueError(os.getcwd() + ' ' + os.environ['HOME'])")
    assert "warpsmith-" in words
    assert str(Path.cwd()) not in words.split("(File")[0]


@pytest.mark.parametrize(
    ("reply", "blobs"),
    [
        ({}, []),
        ({"names": ["y"]}, []),
        ({"names": ["x"]}, [800]),
        ({"names": ["y"]}, [799]),
        ({"names": ["y"]}, [792]),
        ({"names": [["y"]]}, [800]),
        ({"names": 7}, [800]),
    ],
    ids=str,
)
def test_a_reply_that_is_no_result_is_refused(
    monkeypatch: pytest.MonkeyPatch, reply: dict[str, object], blobs: list[int]
) -> None:
    def liar(module: str, argument: object, environment: dict[str, str], **_: object) -> ChildProcess:
        told = {"do": "lie", "reply": reply, "blobs": blobs}
        return ChildProcess("tests.sandbox.children", told, environment)

    monkeypatch.setattr(reference_host, "ChildProcess", liar)
    assert "not a result" in _refused("return {}")


@pytest.mark.parametrize("raw", ["ffffffff", "00000000", "000000047b7d7d7d"])
def test_bytes_that_are_no_frame_end_the_child(raw: str) -> None:
    child = ChildProcess("tests.sandbox.children", {"do": "raw", "bytes": raw}, {})
    try:
        with pytest.raises(ChildDied) as caught:
            child.channel.receive(time.monotonic() + HANGS_S)
    finally:
        child.kill()
    assert caught.value.cause == "protocol"
    assert not child.alive
