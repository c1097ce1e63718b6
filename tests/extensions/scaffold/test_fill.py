"""`init` with a reply: facts take the place of guesses, and running the kernel shows what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.scaffold.test_init_command import ran
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.extensions.scaffold.filled import filled, open_lines
from warpsmith.job_files.filling_contracts import FillReply
from warpsmith.job_files.jobfile import JobFile

SOURCE = """typedef struct { int first; float gain; } Setup;
__kernel void scale(__global const float* x, __global float* y, Setup s, float a, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = x[i] < a ? FACTOR * x[s.first] : s.gain;
  if (i < n / 2 + 5) y[i] += a;
}
"""
REFERENCE = """def reference(inputs, dims):
    x, a, s = inputs["x"], inputs["a"], inputs["s"]
    y = np.where(x < a, 3 * x[s["first"]], s["gain"])
    y[: dims["n"] // 2 + 5] += a
    return {"y": y}
"""
REPLY: dict[str, Any] = {
    "macros": {"FACTOR": 3},
    "arguments": [
        {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
        {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
        {
            "name": "s",
            "role": "struct",
            "type": "Setup",
            "fields": [
                {"name": "first", "dtype": "int32", "value": 2},
                {"name": "gain", "dtype": "float32", "value": "0.25"},
            ],
        },
        {"name": "a", "dtype": "float32", "role": "scalar", "value": "0.5"},
    ],
    "grid": ["ceil_div(n, 64)"],
    "block": [64],
    "workloads": [{"n": 65536}],
    "small": [{"n": 100}, {"n": 333}],
    "reference": REFERENCE,
    "notes": ["a is a guess"],
}


def tried(
    folder: Path, capsys: pytest.CaptureFixture[str], *options: str, **changes: Any
) -> tuple[int, str, str]:
    """Exit code, output and errors of `init scale.cl --answer reply.json` with these changes of the reply."""
    (folder / "scale.cl").write_text(SOURCE)
    (folder / "reply.json").write_text(json.dumps(REPLY | changes))
    return ran(capsys, "init", str(folder / "scale.cl"), "--answer", str(folder / "reply.json"), *options)


def test_a_question_holds_what_is_needed_to_answer_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scale.cl").write_text(SOURCE)
    (tmp_path / "host.cpp").write_text('auto k = cl::Kernel(program, "scale"); // n is a million\n')
    code, _, _ = ran(capsys, "init", str(tmp_path / "scale.cl"), "--question", str(tmp_path / "asked/q.json"))
    assert code == 0 and not (tmp_path / "scale.yaml").exists()
    asked = json.loads((tmp_path / "asked/q.json").read_text())
    assert "TODO" in asked["question"]["job_file"] and "FACTOR" in asked["question"]["source"]
    assert "n is a million" in asked["question"]["host"]["host.cpp"]
    assert "earlier" not in asked["question"] and "{where}" not in asked["instructions"]
    assert set(asked["wanted"]["required"]) == {"workloads", "small"}


def test_a_right_reply_makes_a_job_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tried(tmp_path, capsys)
    assert code == 0, err
    assert "next: warpsmith tune" in out
    text = (tmp_path / "scale.yaml").read_text()
    assert "TODO" not in text
    assert "it compiles; launched with n=100; launched with n=333; a is a guess." in text
    job = JobFile.parsed(tmp_path / "scale.yaml", text).job()
    assert job.kernel.options == ("-DFACTOR=3",)
    assert [a.role.value for a in job.kernel.arguments] == ["input", "output", "struct", "scalar", "scalar"]
    assert job.workloads[0].dimensions == {"n": 65536}
    assert text.count("# as a model says") == 7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reference": REFERENCE.replace("3 * x", "2 * x")}, "the kernel and its reference differ"),
        ({"grid": ["ceil_div(n, 128)"]}, "were never written"),
        ({"macros": {}}, "still open: - {name: FACTOR"),
        ({"arguments": REPLY["arguments"][:3]}, "still open: - {name: a, "),
        ({"arguments": [*REPLY["arguments"], {**REPLY["arguments"][3], "name": "b"}]}, "has no b"),
        ({"workloads": [{"m": 1}]}, "unknown name 'n'"),
        ({"small": [{"n": 100}]}, "small"),
        ({"small": [{"n": 100}, {"n": 100}]}, "both sets of sizes are the same"),
        ({"small": [{"n": 100}, {"n": 10**8}]}, "not launched: its buffers have 762 MiB"),
        ({"block": ["import os"]}, "kernel.launch.block"),
        ({"reference": "def reference(inputs, dims):\n    return open('/etc/passwd')"}, "reference"),
    ],
)
def test_a_wrong_reply_is_found_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: str
) -> None:
    code, _, err = tried(tmp_path, capsys, **changes)
    assert code == 2 and words in err, err
    assert not (tmp_path / "scale.yaml").exists()


def test_the_next_question_has_the_reply_and_its_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    following = tmp_path / "q2.json"
    code, _, _ = tried(tmp_path, capsys, "--question", str(following), grid=["ceil_div(n, 128)"])
    assert code == 2
    question = json.loads(following.read_text())["question"]
    assert question["earlier"]["grid"] == ["ceil_div(n, 128)"]
    assert any("were never written" in problem for problem in question["problems"])


def test_what_a_reply_leaves_out_stays_open(tmp_path: Path) -> None:
    (tmp_path / "scale.cl").write_text(SOURCE)
    text = scaffold([tmp_path / "scale.cl"], tmp_path / "job.yaml", InitOptions())
    reply = FillReply(workloads=({"n": 5},), small=({"n": 3}, {"n": 4}))
    given = filled(text, reply, "as it says")
    assert "  - dimensions: {n: 5}  # as it says" in given
    assert set(open_lines(text)) - set(open_lines(given)) == {
        line for line in open_lines(text) if line.startswith("- dimensions")
    }


def test_a_model_and_a_file_are_not_both_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = tried(tmp_path, capsys, "--model")
    assert code == 2 and "--model" in err
