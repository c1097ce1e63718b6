"""What a release refuses, and that this tree passes what needs no further tool."""

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts import release
from scripts.packed_files import (
    content_problems,
    differences,
    in_context,
    in_sdist,
    in_wheel,
    read_archive,
    sha256,
)
from scripts.release import Refused, Source
from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[3]
TREE = (
    "Dockerfile",
    "LICENSE",
    "README.md",
    "api/app.py",
    "benchmarks/results/one.json",
    "pyproject.toml",
    "requirements/api.txt",
    "requirements/dev.txt",
    "tests/test_one.py",
    "warpsmith/version.py",
    "warpsmith/_commit.txt",
)
WHEEL = in_wheel(TREE, "1.0.0")


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder, as somebody."""
    named = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *named, *arguments], cwd=folder, check=True, timeout=HANGS_S)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit and a package."""
    folder = tmp_path / "checkout"
    (folder / "warpsmith").mkdir(parents=True)
    (folder / "warpsmith" / "version.py").write_text('"""A version."""\n\n__version__ = "1.2.3"\n')
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path]:
    """This tree, changed or not, as a release builds it; it was found without fault."""
    if not (ROOT / ".git").exists():
        pytest.skip("a release is built from a checkout")
    work = tmp_path_factory.mktemp("release")
    source = release.copied_source(ROOT, work / "tree")
    release.checked_archives(source, work / "made", work)
    return source, work / "made"


def test_a_clean_tree_is_accepted_and_a_dirty_one_refused(checkout: Path) -> None:
    (checkout / "one.log").write_text("ignored files do not count")
    release.refuse_changes(checkout)
    (checkout / "warpsmith" / "version.py").write_text("changed\n")
    with pytest.raises(Refused, match=r"--trial:\n M warpsmith/version\.py"):
        release.refuse_changes(checkout)


def test_a_file_that_git_does_not_know_makes_a_tree_dirty(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("mine\n")
    with pytest.raises(Refused, match=r"notes\.txt"):
        release.refuse_changes(checkout)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(Refused, match="not a git repository"):
        release.refuse_changes(tmp_path)


def test_nothing_is_left_of_a_refused_release(checkout: Path, tmp_path: Path) -> None:
    (checkout / "notes.txt").write_text("mine\n")
    with pytest.raises(Refused):
        release.release(checkout, tmp_path / "dist", trial=False)
    assert not (tmp_path / "dist").exists()


def test_a_copy_holds_what_git_lists_and_names_version_and_commit(checkout: Path, tmp_path: Path) -> None:
    (checkout / "one.log").write_text("ignored\n")
    source = release.copied_source(checkout, tmp_path / "copy")
    assert source.version == "1.2.3"
    assert set(source.names) == {".gitignore", "warpsmith/version.py", "warpsmith/_commit.txt"}
    assert (tmp_path / "copy" / "warpsmith" / "_commit.txt").read_text() == f"{source.commit}\n"
    assert not source.commit.endswith("-dirty")
    (checkout / "notes.txt").write_text("mine\n")
    assert release.copied_source(checkout, tmp_path / "trial").commit == f"{source.commit}-dirty"


def test_applications_are_in_a_wheel_below_the_core() -> None:
    assert {name for name in WHEEL if ".dist-info/" not in name} == {
        "warpsmith/version.py",
        "warpsmith/_commit.txt",
        "warpsmith/_apps/api/app.py",
    }


def test_the_context_holds_what_the_dockerfile_copies_and_nothing_else() -> None:
    first = "FROM a AS b\nCOPY requirements/api.txt requirements/\n"
    dockerfile = f"{first}FROM c\nCOPY --from=b /opt /opt\nCOPY api api\n"
    assert in_context(TREE, dockerfile) == {"Dockerfile", "requirements/api.txt", "api/app.py"}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("stray.py", b"", "stray.py does not belong there"),
        ("tests/test_one.py", b"", "tests/test_one.py does not belong there"),
        (
            "warpsmith/_apps/api/app.py",
            b"-----BEGIN RSA PRIVATE KEY-----",
            "app.py holds what looks like a key",
        ),
        ("warpsmith/_commit.txt", b"AKIA" + b"ABCDEFGH" * 2, "_commit.txt holds what looks like a key"),
    ],
)
def test_a_wheel_with_a_stray_file_or_a_key_is_refused(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    path = tmp_path / "one.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for wanted in sorted(WHEEL - {name}):
            wheel.writestr(wanted, b"")
        wheel.writestr(name, data)
    found = list(content_problems(read_archive(path), WHEEL))
    assert len(found) == 1 and found[0].endswith(said)


def test_a_wheel_without_a_data_file_is_refused() -> None:
    files = dict.fromkeys(WHEEL - {"warpsmith/_commit.txt"}, b"")
    assert list(content_problems(files, WHEEL)) == ["warpsmith/_commit.txt is missing"]


@pytest.mark.parametrize(
    "name", ["warpsmith/tests/one.py", "api/.env.local", "db/own.key", "api/secrets/one"]
)
def test_some_paths_are_refused_although_the_tree_holds_them(name: str) -> None:
    tree = (*TREE, name)
    files = dict.fromkeys(in_sdist(tree), b"")
    assert list(content_problems(files, in_sdist(tree))) == [f"{name} does not belong there"]


def test_differences_name_the_files() -> None:
    assert list(differences({"a": b"1", "b": b"1"}, {"a": b"2", "c": b""})) == [
        "a differs",
        "b is in one of them only",
        "c is in one of them only",
    ]


def test_a_tar_depends_on_names_and_bytes_only(tmp_path: Path) -> None:
    for folder, mode in (("one", 0o600), ("two", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("same")
        (tmp_path / folder / "file").chmod(mode)
        release.write_tar(tmp_path / folder, ["file"], tmp_path / f"{folder}.tar.gz", 1_000_000)
    assert sha256(tmp_path / "one.tar.gz") == sha256(tmp_path / "two.tar.gz")


def test_this_tree_is_built_without_fault_and_knows_its_commit(built: tuple[Source, Path]) -> None:
    source, made = built
    archives = sorted(path.name for path in made.iterdir())
    assert archives == [
        f"warpsmith-{source.version}-images.tar.gz",
        f"warpsmith-{source.version}-py3-none-any.whl",
        f"warpsmith-{source.version}.tar.gz",
    ]
    for path in made.iterdir():
        assert read_archive(path)["warpsmith/_commit.txt"].decode() == f"{source.commit}\n"


def test_an_unpacked_source_distribution_knows_its_commit(
    built: tuple[Source, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warpsmith.commit import commit_name

    monkeypatch.delenv("WARPSMITH_COMMIT", raising=False)
    source, made = built
    with tarfile.open(made / f"warpsmith-{source.version}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert commit_name(tmp_path / f"warpsmith-{source.version}" / "warpsmith") == source.commit


def test_a_build_that_depends_on_its_folder_is_refused(built: tuple[Source, Path], tmp_path: Path) -> None:
    source, made = built
    shutil.copytree(made, tmp_path / "made")
    context = tmp_path / "made" / source.context
    release.write_tar(source.tree, ["Dockerfile"], context, source.epoch)
    found = list(release.rebuild_problems(source, tmp_path / "made", tmp_path / "work"))
    assert len(found) == 1
    assert found[0].startswith(f"{source.context}: built twice, it differs: ")


def test_a_release_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    made, out = tmp_path / "made", tmp_path / "dist"
    made.mkdir()
    (made / "one.whl").write_text("1")
    (made / "SHA256SUMS").write_text(release.sums(made))
    release.replace(made, out)
    (made / "one.whl").rename(made / "two.whl")
    (made / "SHA256SUMS").unlink()
    (made / "SHA256SUMS").write_text(release.sums(made))
    release.replace(made, out)
    assert sorted(path.name for path in out.iterdir()) == ["SHA256SUMS", "two.whl"]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True, timeout=HANGS_S)
    (out / "mine.txt").write_text("keep")
    with pytest.raises(Refused, match=r"mine\.txt"):
        release.replace(made, out)
    assert (out / "two.whl").exists()
