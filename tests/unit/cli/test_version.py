"""Version and commit: from the variable, from the file of a build, or from git."""

import subprocess
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S
from warpsmith import __version__
from warpsmith.cli import main
from warpsmith.commit import FILE, commit_name, version_text


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a folder that is no checkout."""
    monkeypatch.delenv("WARPSMITH_COMMIT", raising=False)
    package = tmp_path / "tree" / "warpsmith"
    package.mkdir(parents=True)
    (package / "module.py").write_text("one = 1\n")
    return package


def git(folder: Path, *arguments: str) -> str:
    """What git prints in that folder."""
    named = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    ran = subprocess.run(
        ["git", *named, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    return ran.stdout.strip()


def committed(folder: Path) -> str:
    """Make that folder a repository with one commit; its hash."""
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return git(folder, "rev-parse", "HEAD")


def test_a_checkout_is_at_the_commit_of_git(package: Path) -> None:
    hashed = committed(package.parent)
    assert commit_name(package) == hashed[:7]


def test_a_tag_does_not_replace_the_commit(package: Path) -> None:
    hashed = committed(package.parent)
    git(package, "tag", "--annotate", "--message", "one", "v1.0.0")
    assert commit_name(package) == hashed[:7]


def test_a_changed_file_is_dirty(package: Path) -> None:
    hashed = committed(package.parent)
    (package / "module.py").write_text("two = 2\n")
    assert commit_name(package) == f"{hashed[:7]}-dirty"


def test_the_file_of_a_build_goes_before_git(package: Path) -> None:
    committed(package.parent)
    (package / FILE).write_text("abcdef0\n")
    assert commit_name(package) == "abcdef0"


def test_the_variable_goes_before_all(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / FILE).write_text("abcdef0\n")
    monkeypatch.setenv("WARPSMITH_COMMIT", "1234567-dirty")
    assert commit_name(package) == "1234567-dirty"


def test_a_repository_around_an_environment_is_not_asked(package: Path) -> None:
    committed(package.parents[1])
    assert commit_name(package) == "unknown"


def test_without_git_the_commit_is_unknown(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed(package.parent)
    monkeypatch.setenv("PATH", str(package))
    assert commit_name(package) == "unknown"


@pytest.mark.parametrize(
    ("commit", "shown"),
    [
        ("352b15e", "1.2.3 (352b15e, clean)"),
        ("352b15e-dirty", "1.2.3 (352b15e, dirty)"),
        ("unknown", "1.2.3 (commit unknown)"),
    ],
)
def test_a_reader_sees_version_and_state(commit: str, shown: str) -> None:
    assert version_text("1.2.3", commit) == shown


def test_the_command_shows_both(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_COMMIT", "352b15e")
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"warpsmith {__version__} (352b15e, clean)\n"
