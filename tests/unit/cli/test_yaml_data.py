"""Plain values in YAML: those of version 1.2; what version 1.1 reads otherwise is refused with its line."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from warpsmith.job_files.jobfile import InvalidJob, JobFile, load_job
from warpsmith.job_files.yaml_data import composed, read_yaml, reader_from, yaml_of

OCTAL_JOB = """\
name: scale
kernel:
  backend: opencl
  source: |
    __kernel void scale(__global const float* x, __global float* y, const int n) {
      for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];
    }
  entry: scale
  arguments:
    - {name: x, dtype: float32, role: input, shape: [n]}
    - {name: y, dtype: float32, role: output, shape: [n]}
    - {name: n, dtype: int32, role: scalar, value: n}
  launch: {grid: ["ceil_div(n, BLOCK)"], block: [BLOCK]}
workloads:
  - dimensions: {n: 0100}
parameters:
  - {name: BLOCK, values: [32, 64, 128, 256], default: 64}
budget: {trials: 8, seconds: 15}
"""
LOADERS = [reader_from(yaml.SafeLoader), reader_from(getattr(yaml, "CSafeLoader", yaml.SafeLoader))]


def refused(tmp_path: Path, text: str) -> str:
    """Message on a job file, without its folder."""
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(InvalidJob) as caught:
        load_job(path)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_a_size_with_a_leading_zero_is_refused_with_its_line(tmp_path: Path) -> None:
    words = "job.yaml:15: 0100 is 64 in YAML 1.1 and 100 in YAML 1.2; write the one that is meant"
    assert refused(tmp_path, OCTAL_JOB) == words


@pytest.mark.parametrize(
    ("text", "older", "newer"),
    [
        ("-0100", "-64", "-100"),
        ("08", '"08"', "8"),
        ("1:30", "90", '"1:30"'),
        ("1:30:00.5", "5400.5", '"1:30:00.5"'),
        ("on", "true", '"on"'),
        ("Off", "false", '"Off"'),
        ("YES", "true", '"YES"'),
        ("no", "false", '"no"'),
        ("1_000", "1000", '"1_000"'),
        ("1_000.5", "1000.5", '"1_000.5"'),
        ("0b101", "5", '"0b101"'),
        ("-0x10", "-16", '"-0x10"'),
        ("0x1_0", "16", '"0x1_0"'),
    ],
)
def test_what_two_versions_read_differently_is_refused(
    tmp_path: Path, text: str, older: str, newer: str
) -> None:
    for job in (OCTAL_JOB.replace("0100", text), OCTAL_JOB.replace("{n: 0100}", f"{{{text}: 1}}")):
        said = refused(tmp_path, job)
        assert said.startswith(f"job.yaml:15: {text} is {older} in YAML 1.1 and {newer} in YAML 1.2; ")
    assert read_yaml(f"a: '{text}'") == {"a": text}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        (".5", 0.5),
        ("5.", 5.0),
        ("0o14", 12),
        ("0x10", 16),
        ("+12", 12),
        ("-0", 0),
        ("00.5", 0.5),
        ("2024-01-01", "2024-01-01"),
        ("2001-12-14 21:59:43", "2001-12-14 21:59:43"),
        ("~", None),
        ("", None),
        ("TRUE", True),
        ("y", "y"),
        ("n", "n"),
        ("=", "="),
        ("12:75", "12:75"),
        ("_1", "_1"),
        ("0o9", "0o9"),
    ],
)
def test_plain_values_are_those_of_version_1_2(loader: Any, text: str, value: object) -> None:
    found = yaml.load(f"a: {text}", Loader=loader)
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize("text", ["08", "1e3", "no", "1_000", "1:30", "2024-01-01", "~", "=", "0o14", "x"])
def test_text_that_is_written_is_read_as_text(text: str) -> None:
    written = yaml_of({"a": text, text: [1e-5, 100, True, None]})
    assert read_yaml(written) == {"a": text, text: [1e-5, 100, True, None]}
    assert yaml.safe_load(yaml_of([text])) == [text]


@pytest.mark.parametrize("text", ["[", "{a: ", "- ", "? "])
def test_a_text_that_is_nested_deeply_is_refused_at_once(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="nested too deeply"):
        composed(text * 100_000)


def test_keys_that_are_merged_again_and_again_are_refused() -> None:
    rows = ["a0: &a0 {k: v}"]
    rows += [f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(yaml.YAMLError, match="merges more than"):
        read_yaml("\n".join(rows))


def test_keys_beside_merged_ones_do_not_repeat(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 3\n")
    file = JobFile.read(path)
    assert file.data["b"] == {"x": 3, "y": 2}
    assert (file.lines.of("b.x"), file.lines.of("b.y")) == (4, 1)


def test_a_character_that_yaml_forbids_has_its_line(tmp_path: Path) -> None:
    said = refused(tmp_path, "# größe\nname: x\nlabels: {a: \x01}\n")
    assert said == "job.yaml:3: cannot be read: character U+0001 is not allowed in YAML"


def test_a_file_of_megabytes_is_read_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    source = "    float x = 1.0f; // a line\n" * 100_000
    values = "".join(f"  - {{name: x{n}, values: [1, 2.5]}}\n" for n in range(4000))
    path.write_text(f"name: x\nkernel:\n  source: |\n{source}parameters:\n{values}")
    began = time.process_time()
    assert len(JobFile.read(path).data["parameters"]) == 4000
    assert time.process_time() - began < 5
