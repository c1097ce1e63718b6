"""How the suite comes by a browser: found, installed by root on Debian, or a reason why there is none."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.chromium import ADVICE, NAMES, VARIABLE, chromium_path
from testbed.deadlines import HANGS_S
from testbed.servers import give_up
from tests.unit.repository.test_layout import ROOT


def program(path: Path, text: str = "") -> Path:
    """A program of a test."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def _only_these_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)


def make_sure(*words: str, root_on_debian: bool = False) -> "subprocess.CompletedProcess[str]":
    """Run the script as `make` does, as root on Debian or as somebody else."""
    code = (
        "import sys; from scripts import debian_packages; from scripts.browser import BROWSER; "
        f"debian_packages.installed_by_root = lambda: {root_on_debian}; "
        "sys.exit(debian_packages.make_sure(BROWSER, None))"
    )
    command = [sys.executable, "-c", code, *words]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=ROOT, env=here, capture_output=True, text=True, check=False, timeout=HANGS_S
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_browser_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    assert chromium_path() is None
    program(tmp_path / name)
    assert chromium_path() == str(tmp_path / name)


def test_the_one_that_is_named_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "chromium")
    monkeypatch.setenv(VARIABLE, str(program(tmp_path / "mine")))
    assert chromium_path() == str(tmp_path / "mine")


def test_a_name_of_nothing_is_an_error_though_there_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "chromium")
    monkeypatch.setenv(VARIABLE, "/nowhere/chrome")
    with pytest.raises(FileNotFoundError, match=f"{VARIABLE} is '/nowhere/chrome', which is no program"):
        chromium_path()
    ran = make_sure()
    assert ran.returncode == 1 and "which is no program" in ran.stderr


def test_a_browser_that_is_there_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "apt-get", "exit 9")
    path = program(tmp_path / "chromium")
    ran = make_sure(root_on_debian=True)
    assert (ran.returncode, ran.stdout) == (0, f"browser: {path}\n")


@pytest.mark.parametrize(("words", "code"), [((), 1), (("--or-skip",), 0)])
def test_who_may_not_install_is_told_what_to_install(words: tuple[str, ...], code: int) -> None:
    ran = make_sure(*words)
    assert (ran.returncode, ran.stderr.strip()) == (code, ADVICE)
    assert "chromium" in ADVICE and VARIABLE in ADVICE


def test_root_on_debian_gets_one(tmp_path: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "chromium"
    made = f"case $1 in install) echo '#!/bin/sh' > {path}; /bin/chmod +x {path};; esac"
    program(tmp_path / "apt-get", f'echo "$DEBIAN_FRONTEND $*" >> {log}; {made}')
    ran = make_sure(root_on_debian=True)
    assert (ran.returncode, ran.stdout) == (0, f"browser: {path}\n"), ran.stderr
    update, install = log.read_text().splitlines()
    assert update.startswith("noninteractive update")
    assert install.startswith("noninteractive install") and install.endswith("chromium fonts-dejavu-core")
    assert "--no-install-recommends" in install


def test_an_installation_that_fails_is_a_reason(tmp_path: Path) -> None:
    program(tmp_path / "apt-get", "exit 100")
    ran = make_sure(root_on_debian=True)
    assert ran.returncode == 1
    assert "status 100" in ran.stderr and ADVICE in ran.stderr


def test_what_is_missing_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        give_up(ADVICE)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        give_up(ADVICE)


@pytest.mark.parametrize(("ci", "option"), [("", "--or-skip"), ("true", "")])
def test_make_accepts_none_only_outside_of_ci(monkeypatch: pytest.MonkeyPatch, ci: str, option: str) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CI", ci)
    asked = ["make", "--dry-run", "test"]
    shown = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANGS_S)
    for script in ("scripts/browser.py", "scripts/clang.py"):
        (line,) = [line for line in shown.stdout.splitlines() if script in line]
        assert line.partition(script)[2].strip() == option
