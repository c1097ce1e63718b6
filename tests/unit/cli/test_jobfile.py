"""Job files: read from YAML or JSON, the source beside them; every error names its field."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES
from warpsmith.domain.plain_data import MAX_VALUES
from warpsmith.errors import InvalidInput
from warpsmith.job_files.jobfile import JobFile, load_job, parse_job
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job

FIELDS: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)


def with_source_file(name: str) -> dict[str, Any]:
    """The fields of a job whose source is in a file of its own."""
    kernel = {k: v for k, v in FIELDS["kernel"].items() if k != "source"} | {"source_file": name}
    return FIELDS | {"kernel": kernel}


def refused(path: Path) -> InvalidInput:
    """The error of a file that cannot be a job."""
    with pytest.raises(InvalidInput) as caught:
        load_job(path)
    return caught.value


@pytest.mark.parametrize("name", ["job.yaml", "job.yml", "job.json", "job"])
def test_yaml_and_json_give_the_same_job(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(FIELDS) if name.endswith("json") else yaml.safe_dump(FIELDS))
    assert load_job(path) == scale_job()


def test_a_source_file_is_read_relative_to_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "scale.cl").write_text(SCALE_SOURCE, encoding="utf-8")
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(with_source_file("kernels/scale.cl")))
    job = load_job(path)
    assert job.kernel.source == SCALE_SOURCE
    assert job.kernel.source_file is None
    assert job == scale_job()


def test_text_is_utf8_whatever_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    fields = FIELDS | {"kernel": FIELDS["kernel"] | {"source": "// grüße 中文 \U0001f600\n" + SCALE_SOURCE}}
    path = tmp_path / "job.yaml"
    path.write_bytes(yaml.safe_dump(fields, allow_unicode=True).encode())
    assert load_job(path).kernel.text.startswith("// grüße 中文 \U0001f600\n")


def test_without_a_folder_no_file_is_read() -> None:
    job = parse_job(with_source_file("/etc/passwd"))
    assert (job.kernel.source, job.kernel.source_file) == (None, "/etc/passwd")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("job.yaml", b"name: [unclosed\nkernel: x\n", ":2: "),
        ("job.yaml", b"name: x\n\tkernel: y\n", ":2: "),
        (
            "job.yaml",
            b"name: !!python/object/apply:os.system ['true']\n",
            "could not determine a constructor",
        ),
        ("job.yaml", b"? [a, b]\n: c\n", "found unhashable key"),
        ("job.yaml", b"name: !!timestamp 2024-99-99\n", "cannot be read"),
        ("job.yaml", b"", "must hold a mapping"),
        ("job.yaml", b"- 1\n- 2\n", "must hold a mapping"),
        ("job.yaml", b"name: a\n---\nname: b\n", ":2: "),
        ("job.yaml", b"name: \xff\xfe\n", "cannot be read"),
        ("job.yaml", b"a: " + b"[" * 3000, "nested too deeply"),
        ("job.json", b'{"name": "x",\n "kernel" 1}', ":2: Expecting ':' delimiter"),
        ("job.json", b"[1, 2]", "must hold a mapping"),
        ("job.json", b"[" * 100_000, "nested too deeply"),
        ("job.json", b'{"seed": ' + b"9" * 5000 + b"}", "cannot be read"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    error = refused(path)
    assert str(error).startswith(f"{path}:")
    assert words in str(error)
    assert len(error.message) < 1000


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        error = refused(path)
        assert str(error).startswith(f"{path}: cannot be read: ")
        assert "Errno" not in str(error)


def test_aliases_that_multiply_are_answered_quickly(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    path.write_text("\n".join([*levels, "name: *a11", "workloads: *a11", "kernel: *a11"]))
    error = refused(path)
    assert str(error) == f"{path}:1: has more than {MAX_VALUES} values"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.cl", "no such file: "),
        ("latin.cl", "did you mean 'latin1.cl'?"),
        ("none/latin1.cl", "no such file: "),
        (".", "cannot be read"),
        ("binary.cl", "cannot be read: it has NUL characters"),
        ("big.cl", f"has {MAX_SOURCE_BYTES + 1} bytes; at most {MAX_SOURCE_BYTES}"),
        ("nul\0.cl", "has a NUL"),
    ],
)
def test_a_source_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "latin1.cl").write_bytes("// grüße".encode("latin-1"))
    (tmp_path / "binary.cl").write_bytes(b"\x7fELF\x02\0\0\xff")
    (tmp_path / "big.cl").write_bytes(b"x" * (MAX_SOURCE_BYTES + 1))
    path = tmp_path / "job.json"
    path.write_text(json.dumps(with_source_file(name)))
    error = refused(path)
    assert error.field == "kernel.source_file"
    assert words in error.message


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8-sig", b""),
        ("latin-1", b""),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
    ],
)
def test_sources_and_headers_load_in_every_encoding(tmp_path: Path, encoding: str, mark: bytes) -> None:
    text = f'// Grüße ©\n#include "real.h"\n{SCALE_SOURCE}'
    header = "/* café */\ntypedef float real;\n"
    for name, held in (("scale.cl", text), ("real.h", header)):
        (tmp_path / name).write_bytes(mark + held.replace("\n", "\r\n").encode(encoding))
    path = tmp_path / "job.json"
    path.write_text(json.dumps(with_source_file("scale.cl")))
    kernel = load_job(path).kernel
    assert kernel.source == text
    assert kernel.files["real.h"] == header


def test_a_source_and_a_source_file_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "scale.cl").write_text(SCALE_SOURCE)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(FIELDS | {"kernel": FIELDS["kernel"] | {"source_file": "scale.cl"}}))
    error = refused(path)
    assert (error.field, error.message) == ("kernel", "give exactly one of source and source_file")


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"nmae": "x"}, "nmae", "no such field; did you mean 'name'?"),
        ({"zzzzzz": 1}, "zzzzzz", "no such field"),
        ({"kernel": FIELDS["kernel"] | {"entri": "x"}}, "kernel.entri", "did you mean 'entry'?"),
        ({"workloads": "n=3"}, "workloads", "tuple"),
        ({"workloads": [{"dimensions": {"n": "many"}}]}, "workloads.0.dimensions.n", "integer"),
        ({"budget": {"trails": 3}}, "budget.trails", "did you mean 'trials'?"),
        ({"kernel": None}, "kernel", "must be a mapping of fields to values"),
        ({"reference": "def reference(inputs, dims): ..."}, "reference", "such as {kind: numpy, source:"),
        ({"reference": []}, "reference", "such as {kind: numpy, source:"),
        ({"budget": 60}, "budget", "such as {trials: 200, seconds: 300}"),
        ({"budget": {"seconds": "60s"}}, "budget.seconds", "must be a number, and is '60s'; write 60"),
        ({"budget": {"trials": "many"}}, "budget.trials", "must be an integer, and is 'many'"),
    ],
)
def test_a_bad_field_is_named(change: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_job(FIELDS | change)
    assert caught.value.field == field
    assert words in caught.value.message
    assert str(caught.value) == f"{field}: {caught.value.message}"


def test_all_problems_are_told_but_not_endlessly() -> None:
    bad = [{"dimensions": {"n": -i}} for i in range(50)]
    with pytest.raises(InvalidInput) as caught:
        parse_job(FIELDS | {"workloads": bad, "seed": -1})
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("workloads.0.dimensions.n: ")
    assert lines[1].startswith("workloads.1.dimensions.n: ")
    assert len(lines) == 8


def test_items_that_are_wrong_do_not_make_the_list_too_short() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_job(FIELDS | {"workloads": [{"dimensions": {"n": 0}}]})
    assert str(caught.value) == "workloads.0.dimensions.n: Input should be greater than or equal to 1"
    with pytest.raises(InvalidInput, match="at least 1 item"):
        parse_job(FIELDS | {"workloads": []})


def test_keys_that_are_not_words_are_refused() -> None:
    with pytest.raises(InvalidInput):
        parse_job({**FIELDS, 3: 4})  # type: ignore[dict-item]


def test_a_document_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_text("number: 10\nlist: [1, 2.5, x]\n")
    assert JobFile.read(path).data["list"] == [1, 2.5, "x"]


@pytest.mark.parametrize("name", ["../secret.cl", "{folder}/secret.cl", "link.cl"])
def test_a_job_file_names_no_file_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.cl").write_text("__kernel void scale() {}")
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "link.cl").symlink_to(tmp_path / "secret.cl")
    path = jobs / "job.json"
    path.write_text(json.dumps(with_source_file(name.format(folder=tmp_path))))
    error = refused(path)
    assert (error.field, "outside of the job file's folder" in error.message) == ("kernel.source_file", True)
    assert load_job(path, [tmp_path]).kernel.text.startswith("__kernel")
