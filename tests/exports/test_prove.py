"""`prove`: real processes, with and without an export."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.exports.test_formats import built, exported
from warpsmith.domain.templates.outcome import Verdict
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.commands.prove import ProofSettings, prove
from warpsmith.extensions.exports.commands.prove_command import prove as by_command

PROGRAM = """
import os, sys
import numpy as np
off = os.environ.get("WARPSMITH_OFF") == "1"
assert bool(os.environ["WARPSMITH_EXPORT"]) != off
assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == sys.argv[1]
runs = sum(1 for _ in open(sys.argv[2])) if os.path.exists(sys.argv[2]) else 0
open(sys.argv[2], "a").write("off\\n" if off else "on\\n")
print("us per step:", (10.0 if off else 5.0) + 0.01 * runs)
np.save(sys.argv[3], np.array([1.0, float("nan"), 2.0 if off else 2.0 + float(sys.argv[4])]))
"""


@pytest.fixture
def wanted(tmp_path: Path) -> Any:
    """Makes what is wanted of a program that is twice as fast with the export."""
    export = exported("torch", tmp_path)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def make(apart: float = 0.0, **changes: Any) -> ProofSettings:
        words = [str(export.absolute()), str(tmp_path / "log"), str(tmp_path / "out.npy"), str(apart)]
        fields: dict[str, Any] = {
            "export": export,
            "command": [sys.executable, str(program), *words],
            "pairs": 5,
            "metric": r"us per step: ([\d.]+)",
            "outputs": tmp_path / "out.npy",
        }
        return ProofSettings(**(fields | changes))

    return make


def test_the_two_take_turns_and_the_gain_has_its_interval(wanted: Any, tmp_path: Path) -> None:
    said: list[str] = []
    found = prove(wanted(), said.append)
    assert found.outputs == "equal"
    assert found.verdict is Verdict.FASTER
    assert 1.9 < found.speedup.low <= found.speedup.estimate <= found.speedup.high < 2.1
    assert len(found.without) == len(found.with_export) == 5
    log = (tmp_path / "log").read_text().split()
    assert log[:6] == ["off", "on", "on", "off", "off", "on"]
    assert len(said) == len(log) == 12


@pytest.mark.parametrize(("rtol", "outputs"), [(1e-3, "equal"), (1e-6, "element 2 is 2.0001, wanted 2.0")])
def test_outputs_are_compared_within_their_tolerance(wanted: Any, rtol: float, outputs: str) -> None:
    found = prove(wanted(apart=1e-4, rtol=rtol))
    assert found.outputs.startswith(outputs)


def test_noise_is_no_gain(tmp_path: Path) -> None:
    """Runs that differ by chance alone, many times: no claim in nearly all."""
    export = exported("torch", tmp_path)
    claims = 0
    for seed in range(20):
        program = f"""
import os, random
runs = len(os.listdir("."))
open(f"run{{runs}}", "w").close()
print("us:", random.Random({seed} * 1000 + runs).lognormvariate(3, 0.05))
"""
        folder = tmp_path / str(seed)
        folder.mkdir()
        command = ["sh", "-c", f'cd {folder} && exec "$@"', "sh", sys.executable, "-S", "-c", program]
        found = prove(ProofSettings(export, command, pairs=5, metric=r"us: ([\d.]+)"))
        claims += found.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert claims <= 1


def test_more_may_be_better(wanted: Any) -> None:
    found = prove(wanted(more_is_better=True))
    assert found.verdict is Verdict.SLOWER
    assert 0.4 < found.speedup.estimate < 0.6


def test_seconds_are_the_figure_if_no_other_is_named(wanted: Any) -> None:
    found = prove(wanted(metric="", pairs=5))
    assert found.metric == "seconds"
    assert all(0 < s < 60 for s in (*found.without, *found.with_export))


def test_the_command_says_it_and_keeps_it_beside_the_evidence(
    wanted: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = wanted()
    assert by_command(asked, as_json=False) == 0
    assert "faster; outputs: equal" in capsys.readouterr().out
    assert json.loads((asked.export / "prove.json").read_text())["verdict"] == "faster"
    assert by_command(wanted(apart=1.0), as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["outputs"] != "equal"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "us per step"}, "one group"),
        ({"metric": "("}, "no regular expression"),
        ({"metric": r"seconds: ([\d.]+)"}, "finds no number"),
        ({"pairs": 4}, "needs 5 at least"),
        ({"command": []}, "after `--`"),
        ({"command": ["no-such-program"]}, "does not start"),
        (
            {"command": [sys.executable, "-c", "print('bad thing'); raise SystemExit(3)"]},
            "ended with 3 .*bad",
        ),
        (
            {"command": [sys.executable, "-c", "import time; time.sleep(60)"], "timeout_s": 0.5},
            "within 0.5 s",
        ),
        ({"command": [sys.executable, "-c", "print('us per step: 1')"]}, "wrote no"),
        ({"export": Path("/nowhere")}, "is no export"),
    ],
)
def test_bad_input_names_the_fix(wanted: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?s){words}"):
        prove(wanted(**changes))


def test_an_export_that_is_off_serves_the_kernel_as_it_was(tmp_path: Path) -> None:
    folder = exported("cpp", tmp_path)
    (folder / "main.cc").write_text(
        '#include "scaled.hpp"\nint main() {\n'
        "  float *x = reinterpret_cast<float *>(0x10000000), *y = reinterpret_cast<float *>(0x20000000);\n"
        "  return scaled_ws::chosen(x, y, 2.5f, 1024, 512);\n}\n"
    )
    program = built(folder, "main.cc")
    for off, number in (("", 1), ("1", 0)):
        done = subprocess.run([program], env=os.environ | {"WARPSMITH_OFF": off}, check=False)
        assert done.returncode == number
