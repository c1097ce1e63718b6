"""Headers of one's own: collected on the client, sent with the job, read by rules, never from elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from warpsmith.domain.kernels.headers import MAX_FILES_BYTES
from warpsmith.errors import InvalidInput
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.collected_headers import headers_of
from warpsmith.job_files.jobfile import InvalidJob, load_job, parse_job
from warpsmith.testing.jobs import scale_job

FIELDS: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)
KERNEL = FIELDS["kernel"]["source"]


def tree(root: Path, **files: str) -> Path:
    """Files by name, `__` for a slash and `_h` for the ending."""
    for name, text in files.items():
        path = root / (name.replace("__", "/").removesuffix("_h") + ".h")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def with_files(**kernel: Any) -> dict[str, Any]:
    """The fields of a job whose kernel has these fields too."""
    return FIELDS | {"kernel": FIELDS["kernel"] | kernel}


def test_headers_are_followed_from_header_to_header(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        common='#include "detail/types.h"\n#include <math.h>\n',
        detail__types='#include "../common.h"\n  #  include "deep/a.h"\n',
        detail__deep__a="int a;",
        unused="int b;",
    )
    sent = headers_of('#include "common.h"\n#include "elsewhere.h"\n', root, [])
    assert sorted(sent.files) == ["common.h", "detail/deep/a.h", "detail/types.h"]
    assert sent.files["detail/deep/a.h"] == "int a;"
    assert sent.include_dirs == (".",)
    assert sent.missing == ((root, "elsewhere.h"), (root, "math.h"))


def test_folders_outside_of_the_sources_are_sent_under_their_names(tmp_path: Path) -> None:
    tree(
        tmp_path,
        one__include__lib__x='#include "y.h"',
        one__include__lib__y="",
        two__include__z="",
        src__k="",
    )
    folders = [tmp_path / "one" / "include", tmp_path / "two" / "include"]
    sent = headers_of('#include <lib/x.h>\n#include <z.h>\n#include "k.h"', tmp_path / "src", folders)
    assert sorted(sent.files) == ["include/lib/x.h", "include/lib/y.h", "include_2/z.h", "src/k.h"]
    assert sent.include_dirs == ("src", "include", "include_2")


def test_a_folder_inside_another_keeps_its_place(tmp_path: Path) -> None:
    tree(tmp_path, lib__up="", lib__attention__x='#include "../up.h"')
    sent = headers_of('#include "x.h"', tmp_path / "lib" / "attention", [tmp_path / "lib"])
    assert sorted(sent.files) == ["attention/x.h", "up.h"]
    assert sent.include_dirs == ("attention", ".")


@pytest.mark.parametrize("name", ["../secret.h", "{root}/secret.h", "link.h"])
def test_nothing_outside_of_the_folders_is_read(tmp_path: Path, name: str) -> None:
    tree(tmp_path, secret="s", src__a="")
    (tmp_path / "src" / "link.h").symlink_to(tmp_path / "secret.h")
    sent = headers_of(f'#include "{name.format(root=tmp_path)}"', tmp_path / "src", [])
    assert sent.files == {}


def test_more_than_may_be_sent_names_the_way_for_large_libraries(tmp_path: Path) -> None:
    tree(tmp_path, large="x" * (MAX_FILES_BYTES + 1))
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(InvalidInput, match="WARPSMITH_INCLUDE_DIRS"):
        headers_of('#include "large.h"', tmp_path, [])


def test_a_job_file_brings_the_headers_of_its_source(tmp_path: Path) -> None:
    tree(tmp_path, repository__kernels__factor="#define FACTOR 2.0f\n", extra__more="")
    source = tmp_path / "repository" / "kernels" / "scale.cl"
    source.write_text('#include "factor.h"\n#include "more.h"\n' + KERNEL)
    job_file = tmp_path / "scale.yaml"
    kernel = {k: v for k, v in FIELDS["kernel"].items() if k != "source"}
    job_file.write_text(
        json.dumps(FIELDS | {"kernel": kernel | {"source_file": "repository/kernels/scale.cl"}})
    )
    assert list(load_job(job_file).kernel.files) == ["factor.h"]
    job = load_job(job_file, [tmp_path / "extra"])
    assert sorted(job.kernel.files) == ["extra/more.h", "kernels/factor.h"]
    assert job.kernel.include_dirs == ("kernels", "extra")
    assert parse_job(job.model_dump(mode="json")) == job, "what is sent is taken as it is"
    large = tmp_path / "repository" / "kernels" / "factor.h"
    large.write_text("x" * (MAX_FILES_BYTES + 1))
    with pytest.raises(InvalidJob) as refused:
        load_job(job_file)
    assert refused.value.field == "kernel.include_dirs"


@pytest.mark.parametrize(
    ("kernel", "field", "words"),
    [
        ({"files": {"/etc/x.h": ""}}, "kernel.files", "is absolute"),
        ({"files": {"a/../../x.h": ""}}, "kernel.files", "plain relative path"),
        ({"files": {"./x.h": ""}}, "kernel.files", "plain relative path"),
        ({"files": {"a b.h": ""}}, "kernel.files", "others than letters"),
        ({"files": {"a\\..\\b.h": ""}}, "kernel.files", "others than letters"),
        ({"files": {"": ""}}, "kernel.files", "plain relative path"),
        ({"files": {"a": "", "a/b.h": ""}}, "kernel.files", "is a file and a folder"),
        ({"files": {"a.h": "x\0"}}, "kernel.files.a.h", "NUL"),
        ({"files": {"a.h": "x" * MAX_FILES_BYTES, "b.h": "x"}}, "kernel.files", "at most"),
        ({"files": {f"{n}.h": "" for n in range(257)}}, "kernel.files", "at most 256"),
        ({"include_dirs": ["include"]}, "kernel.include_dirs.0", "the service reads no files"),
        ({"files": {"a/b.h": ""}, "include_dirs": ["a", "/usr"]}, "kernel.include_dirs.1", "is no folder of"),
    ],
)
def test_what_may_not_travel_is_refused(kernel: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_job(with_files(**kernel))
    assert refused.value.field == field
    assert words in refused.value.message


def test_rules_work_on_a_kernel_in_a_header_that_was_sent() -> None:
    header = '#pragma once\n#include "../factor.h"\n' + KERNEL
    data = with_files(
        source='#include "scale.cl.h"\n',
        files={"lib/scale.cl.h": header, "factor.h": "#define FACTOR 2.0f\n"},
        include_dirs=["lib"],
    )
    template = make_template(parse_job(data)).template
    assert "void scale(" in template.kernel.text
    assert "#include <factor.h>" in template.kernel.text
    assert template.kernel.files == data["kernel"]["files"]
    assert template.applied
