"""The Python blocks of docs/python.md, as printed: one program beside a service, on PoCL."""

import re
from pathlib import Path

import pytest

from testbed.printed_blocks import python_blocks, run_printed
from testbed.service import Service

BLOCKS = python_blocks("docs/python.md")
PRINTED = "127.0.0.1:8765"
"""Address of the service on the page; that of the test has another port."""


@pytest.mark.slow
def test_the_python_of_the_page_runs_as_printed(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 5 and any(PRINTED in block for block in BLOCKS)
    service = Service(tmp_path / "service").start()
    try:
        printed = "\n\n".join(BLOCKS).replace(PRINTED, service.url.removeprefix("http://"))
        ran = run_printed(printed, tmp_path)
        assert ran.returncode == 0, ran.stderr + service.logs()
        assert re.search(r"^matvec: (\d+\.\d\dx over all workloads|no gain)$", ran.stdout, re.M), ran.stdout
        assert re.search(r"^\S+ matvec: done, round \d/\d, \d+/\d+ trials", ran.stdout, re.M), ran.stdout
        assert re.search(r"^done: \d+ tried", ran.stderr, re.M), "progress outside a terminal"
    finally:
        service.stop()
