"""`export --as c`: the header is compiled by a C compiler, and chooses as the look-up does."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.test_shape_lookup import tuned
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.launch_size import evaluated_launch
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.extensions.exports.c_expressions import c_text
from warpsmith.extensions.exports.commands.command import export
from warpsmith.extensions.exports.wanted import ExportRequest
from warpsmith.extensions.exports.write import write_export
from warpsmith.report.shape_lookup import Lookup


class Launch(ctypes.Structure):
    """`ws_launch` of the header."""

    _fields_ = [
        ("kernel", ctypes.c_int),
        ("source", ctypes.c_char_p),
        ("entry", ctypes.c_char_p),
        ("grid", ctypes.c_int64 * 3),
        ("block", ctypes.c_int64 * 3),
        ("shared_bytes", ctypes.c_int64),
        ("local_bytes", ctypes.c_int64 * 64),
        ("local_count", ctypes.c_int),
    ]


def compiled(folder: Path, extra: str = "") -> ctypes.CDLL:
    """A library of the header, without a warning."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    text = f'#include "dispatch.h"\nws_launch pick(int64_t n) {{ return ws_pick(n); }}\n{extra}'
    (folder / "host.c").write_text(text)
    flags = ["-std=c99", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "host.c", "-o", "host.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "host.so"))


def test_the_header_chooses_as_the_look_up_does(tmp_path: Path) -> None:
    shown = tuned()
    write_export(ExportRequest(shown), "c", tmp_path)
    pick = compiled(tmp_path).pick
    pick.restype, pick.argtypes = Launch, [ctypes.c_int64]
    lookup = Lookup(shown)
    scope = {f"device.{n}": v for n, v in lookup.limits.model_dump().items()}
    seen = set()
    for n in (1, 1001, 1024, 1025, 1536, 2048, 2052, 4096, 8192, 16384, 20000, 32768, 65536):
        number = lookup.pick({"n": n})
        names = lookup.job.space.defaults if number is None else lookup.servers[number].configuration
        want = evaluated_launch(lookup.job.kernel.launch, scope | {"n": n} | names, ())
        got = pick(n)
        assert (got.kernel, tuple(got.grid), tuple(got.block)) == (
            0 if number is None else number + 1,
            want.grid,
            want.block,
        ), n
        if number is not None:
            assert got.source.decode() == lookup.servers[number].entry.source
        seen.add(got.kernel)
    assert seen == {0, 1, 2}
    evidence = json.loads((tmp_path / "evidence.json").read_text())
    assert evidence["driver"] == shown.driver
    assert [c["verdict"] for c in evidence["comparisons"]] == [c.verdict for c in shown.comparisons]


def test_a_launch_beyond_the_limits_keeps_the_own_kernel(tmp_path: Path) -> None:
    limits = tuned().limits
    assert limits is not None
    write_export(
        ExportRequest(tuned(limits=limits.model_copy(update={"max_threads_per_block": 128}))), "c", tmp_path
    )
    pick = compiled(tmp_path).pick
    pick.restype, pick.argtypes = Launch, [ctypes.c_int64]
    assert pick(2048).kernel == 0


@pytest.mark.parametrize(
    "text",
    [
        "ceil_div(n, BLOCK * 2) + max(n, 3)",
        "(-n) // 3 + (-n) % 7",
        "n // 2 if n % 2 == 0 and not BLOCK > n else round_up(n, 32)",
        "next_pow2(n) - gcd(n, 12) + abs(-n)",
        "1 if n in (64, 128) or n <= 5 < 7 else 0",
        "(n - 5 or 9) + (n and 4)",
    ],
)
def test_expressions_mean_the_same_in_c(text: str, tmp_path: Path) -> None:
    write_export(ExportRequest(tuned()), "c", tmp_path)
    names = {"BLOCK": 64}
    body = c_text(Expression(text), names)
    function = f"int64_t value(int64_t dim_n) {{ int bad = 0; (void)bad; return {body}; }}\n"
    value = compiled(tmp_path, function).value
    value.restype, value.argtypes = ctypes.c_int64, [ctypes.c_int64]
    for n in (1, 2, 5, 64, 1000):
        assert value(n) == Expression(text).evaluate({"n": n, **names}), n


def test_what_c_cannot_say_is_refused() -> None:
    with pytest.raises(ExpressionError, match="whole-number form"):
        c_text(Expression("n / 2"), {})


def test_bad_input_names_the_fix(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there are: c"):
        write_export(ExportRequest(tuned()), "rust", tmp_path)
    with pytest.raises(InvalidInput, match="tune the job again"):
        write_export(ExportRequest(tuned(limits=None)), "c", tmp_path)
    with pytest.raises(InvalidInput, match="name a folder"):
        export([str(tmp_path)], "c", tmp_path / "out", "", "", "fallback")


def test_a_result_folder_is_exported(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(tuned().model_dump_json())
    export([str(tmp_path)], "c", tmp_path / "out", "", "", "fallback")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"dispatch.h", "evidence.json"}
