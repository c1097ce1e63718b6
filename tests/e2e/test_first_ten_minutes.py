"""The commands of docs/first-ten-minutes.md, as printed: from a kernel to tuned sources, on PoCL."""

import re
from pathlib import Path

import pytest

from testbed.printed_blocks import as_printed, commands, files, run_command

PAGE = "docs/first-ten-minutes.md"
DEPENDS_ON_THE_MACHINE = ("warpsmith doctor", "warpsmith tune filled-in.yaml")


@pytest.mark.slow
def test_the_page_runs_as_printed(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    kernel, written, filled_in = "matvec.cl", "matvec.yaml", "filled-in.yaml"
    shown = files(PAGE)
    assert set(shown) == {kernel, written, filled_in}
    (folder / kernel).write_text(shown[kernel])
    for line, prints in commands(PAGE):
        ran = run_command(line, folder)
        assert ran.returncode == 0, ran.stdout
        if line not in DEPENDS_ON_THE_MACHINE:
            assert as_printed(prints, ran.stdout), f"$ {line}\n{ran.stdout}"
        if line == f"warpsmith init {kernel}":
            assert (folder / written).read_text() == shown[written]
            (folder / filled_in).write_text(shown[filled_in])
    assert re.search(r"^matvec: (\d+\.\d\dx over all workloads|no gain) *$", ran.stdout, re.M), ran.stdout
    written_files = [row for row in prints.splitlines() if row.startswith("wrote ") and "tuned-" not in row]
    assert len(written_files) == 4 and [row for row in written_files if f"{row}\n" not in ran.stdout] == []
