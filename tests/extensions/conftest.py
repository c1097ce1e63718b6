"""Every job file that a test has `init` write is held to the form of a job."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from warpsmith.domain.device import Backend
from warpsmith.extensions.scaffold.command import init
from warpsmith.extensions.scaffold.known import nothing_known
from warpsmith.extensions.triton import scaffold as triton


@pytest.fixture(autouse=True)
def _forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test whose scaffold a job refuses, apart from its placeholders."""
    plain, of_triton = init._scaffold, triton.written

    def checked(sources: Sequence[Path], target: Path, wanted: init.InitOptions) -> str:
        text = plain(sources, target, wanted)
        if wanted.known is nothing_known:
            assert init.formed(text, sources, target, wanted) == text
        return text

    def checked_triton(source: Path, target: Path, entry: str | None) -> str:
        text = of_triton(source, target, entry)
        assert init.formed(text, [source], target, init.InitOptions(backend=Backend.TRITON)) == text
        return text

    monkeypatch.setattr(init, "_scaffold", checked)
    monkeypatch.setattr(triton, "written", checked_triton)
