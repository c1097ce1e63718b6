"""What the callbacks of PoCL may not do. What they see is in `tests/sandbox/test_native_code.py`."""

import gc
from pathlib import Path

import pytest

from warpsmith.backends.opencl.pocl_watch import _PoclWatch


@pytest.mark.parametrize("was_on", [True, False])
def test_nothing_is_collected_while_pocl_holds_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_on: bool
) -> None:
    """A collection may release a program, for which PoCL waits for the lock that it holds."""
    path, seen = tmp_path / "a.preproc.cl", []
    path.write_text("int x;")
    read = Path.read_text

    def read_text(self: Path, errors: str) -> str:
        seen.append(gc.isenabled())
        return read(self, errors=errors)

    monkeypatch.setattr(Path, "read_text", read_text)
    watch = _PoclWatch()
    (gc.enable if was_on else gc.disable)()
    try:
        assert watch._keep(str(path).encode()) == 0
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
    assert (seen, watch.text, path.exists()) == ([False], "int x;", False)


@pytest.mark.parametrize("left", [None, ""])
def test_a_source_that_could_not_be_preprocessed_has_no_text(tmp_path: Path, left: str | None) -> None:
    path, watch = tmp_path / "a.preproc.cl", _PoclWatch()
    if left is not None:
        path.write_text(left)
    watch._keep(str(path).encode())
    assert watch.text is None
