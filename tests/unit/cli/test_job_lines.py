"""Errors about a job file name the line, whatever the file looks like."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from warpsmith.errors import InvalidInput
from warpsmith.job_files.job_lines import JobLines
from warpsmith.job_files.jobfile import InvalidJob, JobFile, load_job
from warpsmith.job_files.yaml_data import composed
from warpsmith.testing.jobs import scale_job

TEXT = """\
# a comment
name: scale
kernel:
  backend: opencl
  source: |
    // first

    void f() {}
  entry: scale
  arguments:
    - {name: x, dtype: float32,
       role: input, shape: [n]}
    -
      name: y
      dtype: float32
      shape:
        - n
        - 2
  launch: {grid: [1], block: [64]}
reference: {kind: numpy, source: "def f(): pass"}
workloads:
- dimensions: {n: 3}
"""
FIELDS: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("name", 2),
        ("kernel", 3),
        ("kernel.source", 5),
        ("kernel.arguments.0", 11),
        ("kernel.arguments.0.role", 12),
        ("kernel.arguments.0.draw.std", 11),
        ("kernel.arguments.1.dtype", 15),
        ("kernel.arguments.1.role", 14),
        ("kernel.arguments.1.shape.1", 18),
        ("kernel.launch.grid.0", 19),
        ("reference.numpy.source", 20),
        ("workloads.0.dimensions.n", 22),
        ("workloads.7", 21),
        ("budget", 2),
        ("", 2),
    ],
)
def test_a_field_has_its_line_and_one_that_is_absent_that_of_what_would_hold_it(
    field: str, line: int
) -> None:
    assert JobLines(composed(TEXT)).of(field) == line


def test_a_line_of_a_source_is_a_line_of_the_file_where_the_source_is_a_block() -> None:
    lines = JobLines(composed(TEXT))
    assert lines.of("kernel.source", 1) == 6
    assert TEXT.splitlines()[(lines.of("kernel.source", 3) or 0) - 1] == "    void f() {}"
    assert lines.of("reference.source", 1) == 20


@pytest.mark.parametrize("indent", [1, "\t"])
def test_json_has_lines_with_blanks_and_with_tabs(indent: int | str) -> None:
    text = json.dumps(FIELDS, indent=indent)
    wanted = next(n for n, t in enumerate(text.splitlines(), 1) if '"entry"' in t)
    assert JobLines(composed(text)).of("kernel.entry") == wanted


def test_windows_line_ends_aliases_and_merged_keys_have_lines() -> None:
    assert JobLines(composed(TEXT.replace("\n", "\r\n"))).of("kernel.arguments.1.dtype") == 15
    text = "base: &b\n  dtype: float32\nkernel:\n  arguments:\n    - <<: *b\n      name: x\n"
    assert JobLines(composed(text)).of("kernel.arguments.0.dtype") == 2


def test_of_a_key_given_twice_the_last_counts_as_it_does_for_the_value() -> None:
    text = "seed: 1\nname: x\nseed: 2\n"
    assert yaml.safe_load(text)["seed"] == 2
    assert JobLines(composed(text)).of("seed") == 3


def test_text_without_nodes_has_no_lines() -> None:
    assert JobLines(composed("")).of("name") is None


def test_several_problems_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    fields = {"seed": -1, "budgte": {}} | FIELDS
    fields["kernel"] = {k: v for k, v in FIELDS["kernel"].items() if k != "entry"}
    path.write_text(yaml.safe_dump(fields, sort_keys=False))
    with pytest.raises(InvalidJob) as caught:
        load_job(path)
    assert str(caught.value).splitlines() == [
        f"{path}:1: seed: Input should be greater than or equal to 0",
        f"{path}:2: budgte: no such field; did you mean 'budget'?",
        f"{path}:4: kernel.entry: is missing",
    ]


def test_a_missing_source_file_is_one_problem_among_others(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    kernel = {k: v for k, v in FIELDS["kernel"].items() if k != "source"} | {"source_file": "x.cl"}
    path.write_text(yaml.safe_dump(FIELDS | {"kernel": kernel, "seed": -1}, sort_keys=False))
    with pytest.raises(InvalidJob) as caught:
        load_job(path)
    assert [f.field for f in caught.value.findings] == ["kernel.source_file", "seed"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rol": "input"}, "kernel.arguments.0.rol: no such field; did you mean 'role'?"),
        ({"role": "input", "shap": ["n"]}, "kernel.arguments.0.shap: no such field; did you mean 'shape'?"),
    ],
)
def test_a_misspelt_field_is_one_that_is_missing_beside_it(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    argument = {"name": "x", "dtype": "float32", "shape": ["n"]} | change
    path = write_argument(tmp_path, argument)
    with pytest.raises(InvalidJob) as caught:
        load_job(path)
    assert str(caught.value).splitlines()[0].endswith(message)
    assert "role: is missing" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("fp32", "float32"),
        ("float", "float32"),
        ("f32", "float32"),
        ("Float32", "float32"),
        ("flaot32", "float32"),
        ("half", "float16"),
        ("double", "float64"),
        ("int", "int32"),
        ("uchar", "uint8"),
        ("size_t", "uint64"),
    ],
)
def test_a_dtype_that_is_none_comes_with_the_one_that_is_meant(tmp_path: Path, word: str, meant: str) -> None:
    path = write_argument(tmp_path, {"name": "x", "dtype": word, "role": "input", "shape": ["n"]})
    with pytest.raises(InvalidJob) as caught:
        load_job(path)
    assert f"kernel.arguments.0.dtype: argument x: {word!r}: did you mean {meant!r}? " in str(caught.value)


def test_a_dtype_that_is_still_to_be_given_is_told_so(tmp_path: Path) -> None:
    path = write_argument(tmp_path, {"name": "x", "dtype": "TODO", "role": "input", "shape": ["n"]})
    with pytest.raises(InvalidJob, match="argument x: is still TODO"):
        load_job(path)


def test_what_a_service_says_of_a_field_gets_its_line_and_other_errors_stay(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(TEXT)
    file = JobFile.read(path)
    with pytest.raises(InvalidJob) as caught, file.naming_lines():
        raise InvalidInput("kernel.options.0", "not allowed")
    assert str(caught.value) == f"{path}:3: kernel.options.0: not allowed"
    with pytest.raises(InvalidInput) as other, file.naming_lines():
        raise InvalidInput("API key", "is wrong")
    assert not isinstance(other.value, InvalidJob)


def test_a_failure_that_begins_with_a_field_gets_its_line_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(TEXT)
    file = JobFile.read(path)
    assert file.placed("kernel.entry: no such") == f"{path}:9: kernel.entry: no such"
    assert file.placed("reference: 'y' has shape") == f"{path}:20: reference: 'y' has shape"
    for other in ("the device was lost", "timeout: no answer", "name"):
        assert file.placed(other) == other


def write_argument(folder: Path, argument: dict[str, Any]) -> Path:
    """A job file whose first argument is this one."""
    path = folder / "job.yaml"
    kernel = FIELDS["kernel"] | {"arguments": [argument, *FIELDS["kernel"]["arguments"][1:]]}
    path.write_text(yaml.safe_dump(FIELDS | {"kernel": kernel}, sort_keys=False))
    return path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("budget: {trials: 1}\nname: a\nbudget: {trials: 2}\n", ("budget", 1, 3)),
        ("kernel:\n  entry: a\n  options: []\n  entry: b\n", ("entry", 2, 4)),
        ("a:\n  - {x: 1}\n  - {x: 1, y: 2,\n     x: 3}\n", ("x", 3, 4)),
        ('{\n"name": 1,\n\t"name": 2}', ("name", 2, 3)),
        ("a: {x: 1}\nb: {x: 1}\nc: [{x: 1}, {x: 1}]\n", None),
        ("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 3\n", None),
        ("a: &a [*a]\n", None),
    ],
)
def test_a_key_that_stands_twice_has_both_lines(text: str, found: tuple[str, int, int] | None) -> None:
    assert JobLines(composed(text)).repeated_key() == found
