"""Build and check what a release consists of: `python -m scripts.release --out dist [--trial]`.

The folder then holds the wheel, the source distribution, the context of the images (`docker build - < FILE`),
a bill of materials for each image (CycloneDX), the licences of all locked packages, and SHA256SUMS. All of it
is built from what git lists, in a copy, so that ignored files stay out; times are those of the commit.
"""

import argparse
import gzip
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts import licences
from scripts.packed_files import (
    content_problems,
    differences,
    in_context,
    in_sdist,
    in_wheel,
    read_archive,
    sha256,
)

ROOT = Path(__file__).resolve().parents[1]
COMMIT = runpy.run_path(str(ROOT / "warpsmith" / "commit.py"))
"""The module by itself: what else the package imports is not installed beside the tools of a release."""
IMAGES = ("api", "worker-cpu", "worker-gpu")
SUMS = "SHA256SUMS"


class Refused(Exception):
    """The tree, or what was built of it, is not fit for a release; the text has a line for each reason."""


@dataclass(frozen=True)
class Source:
    """What is released."""

    tree: Path
    """A copy of what git lists."""
    names: tuple[str, ...]
    """Its files, relative to it."""
    version: str
    commit: str
    epoch: int
    """Time of the commit, in seconds since 1970."""

    @property
    def context(self) -> str:
        """Name of the archive for the images."""
        return f"warpsmith-{self.version}-images.tar.gz"


def git(root: Path, *arguments: str) -> str:
    """What git prints for a checkout.

    Raises:
        Refused: it is no checkout.
    """
    ran = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Refused(f"git {arguments[0]}: {ran.stderr.strip()}")
    return ran.stdout


def refuse_changes(root: Path) -> None:
    """Accept only the tree of a commit.

    Raises:
        Refused: a file was changed, or is not known to git.
    """
    if changed := git(root, "status", "--porcelain").rstrip():
        raise Refused(f"the tree is not clean; commit first, or try with --trial:\n{changed}")


def copied_source(root: Path, tree: Path) -> Source:
    """Copy what git lists, with the file that names the commit.

    Args:
        root: the checkout.
        tree: folder for the copy; it does not exist yet.
    """
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    names = sorted({name for name in listed if name and (root / name).is_file()})
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, tree / name)
    dirty = COMMIT["DIRTY"] if git(root, "status", "--porcelain") else ""
    commit = git(root, "rev-parse", "--short=7", "HEAD").strip() + dirty
    written = f"warpsmith/{COMMIT['FILE']}"
    (tree / written).write_text(f"{commit}\n")
    version = re.findall(r'^__version__ = "(.+)"$', (tree / "warpsmith/version.py").read_text(), re.MULTILINE)
    epoch = int(git(root, "log", "-1", "--format=%ct"))
    return Source(tree, (*names, written), version[0], commit, epoch)


def build(source: Source, out: Path) -> None:
    """Build wheel, source distribution and context.

    Raises:
        Refused: the build back end failed.
    """
    out.mkdir(parents=True)
    _hatchling(source.tree, out, source.epoch, "sdist", "wheel")
    wanted = in_context(source.names, (source.tree / "Dockerfile").read_text())
    write_tar(source.tree, wanted, out / source.context, source.epoch)


def _hatchling(tree: Path, out: Path, epoch: int, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    for target in targets:
        ran = subprocess.run(
            [*command, "-t", target], cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise Refused(f"{target}: {ran.stderr.strip()}")


def write_tar(tree: Path, names: Iterable[str], path: Path, epoch: int) -> None:
    """A gzipped tar of these files that depends on their names and bytes only."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(names):
            data = (tree / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), epoch, 0o644
            archive.addfile(member, io.BytesIO(data))


def only(folder: Path, pattern: str) -> Path:
    """The one file of that pattern."""
    (path,) = folder.glob(pattern)
    return path


def archive_problems(source: Source, built: Path) -> Iterator[str]:
    """What is wrong with the contents of the archives."""
    dockerfile = (source.tree / "Dockerfile").read_text()
    expected = {
        only(built, "*.whl"): in_wheel(source.names, source.version),
        only(built, f"warpsmith-{source.version}.tar.gz"): in_sdist(source.names),
        built / source.context: in_context(source.names, dockerfile),
    }
    for path, names in expected.items():
        yield from (f"{path.name}: {line}" for line in content_problems(read_archive(path), names))


def rebuild_problems(source: Source, built: Path, work: Path) -> Iterator[str]:
    """What a second build, in another folder, and a build of the source distribution make differently."""
    again = work / "again"
    shutil.copytree(source.tree, again / "tree")
    build(Source(again / "tree", source.names, source.version, source.commit, source.epoch), again / "out")
    for path in sorted(built.iterdir()):
        if sha256(path) != sha256(again / "out" / path.name):
            found = list(differences(read_archive(path), read_archive(again / "out" / path.name)))
            yield f"{path.name}: built twice, it differs: {'; '.join(found) or 'in its envelope'}"
    with tarfile.open(only(built, f"warpsmith-{source.version}.tar.gz")) as archive:
        archive.extractall(work / "unpacked", filter="data")
    _hatchling(only(work / "unpacked", "*"), work / "from-sdist", source.epoch, "wheel")
    wheel = only(built, "*.whl")
    other = work / "from-sdist" / wheel.name
    if sha256(wheel) != sha256(other):
        found = list(differences(read_archive(wheel), read_archive(other)))
        words = "; ".join(found) or "in its envelope"
        yield f"{wheel.name}: built from the source distribution, it differs: {words}"


def checked_archives(source: Source, built: Path, work: Path) -> None:
    """Build, and check what needs no further tool.

    Raises:
        Refused: a reason a line.
    """
    build(source, built)
    if found := [*archive_problems(source, built), *rebuild_problems(source, built, work)]:
        raise Refused("\n".join(found))


def check_metadata(source: Source, built: Path) -> None:
    """Ask twine about metadata and description.

    Raises:
        Refused: an index would not accept them.
    """
    packages = (only(built, "*.whl"), only(built, f"warpsmith-{source.version}.tar.gz"))
    _tool("twine", "check", "--strict", *map(str, packages))


def write_licences(tree: Path, out: Path) -> None:
    """The licences of all locked packages, as JSON and as a table.

    Raises:
        Refused: names each package whose licence is unknown or not permitted.
    """
    table = licences.read_table((tree / "requirements/licences.json").read_text())
    wanted = {
        pin for path in (tree / "requirements").glob("*.txt") for pin in licences.pins(path.read_text())
    }
    if found := list(licences.problems(wanted, table)):
        raise Refused("\n".join(found))
    shown = {pin: table[pin] for pin in wanted}
    (out / "licences.json").write_text(licences.table_text(shown))
    (out / "licences.md").write_text(licences.markdown(shown))


def write_bills(tree: Path, version: str, out: Path) -> None:
    """A bill of materials for each image, checked against the schema of CycloneDX as it is written."""
    for image in IMAGES:
        path = out / f"warpsmith-{version}-{image}.cdx.json"
        lock = tree / "requirements" / f"{image}.txt"
        options = ["--output-reproducible", "--validate", "--of", "JSON", "-o", str(path)]
        _tool("cyclonedx_py", "requirements", str(lock), *options)


def _tool(module: str, *arguments: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise Refused(f"{module} {arguments[0]}: {(ran.stdout + ran.stderr).strip()}")


def sums(folder: Path) -> str:
    """Text of SHA256SUMS, which `sha256sum --check` reads."""
    return "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()))


def replace(made: Path, out: Path) -> None:
    """Put a release into its folder.

    Raises:
        Refused: the folder holds anything but an earlier release.
    """
    out.mkdir(parents=True, exist_ok=True)
    listed = (out / SUMS).read_text().splitlines() if (out / SUMS).is_file() else []
    earlier = {line.partition("  ")[2] for line in listed} | {SUMS}
    if strange := sorted(path.name for path in out.iterdir() if path.name not in earlier):
        raise Refused(
            f"{out} holds files that are not of a release, such as {strange[0]}; name another folder"
        )
    for path in out.iterdir():
        path.unlink()
    for path in made.iterdir():
        shutil.copyfile(path, out / path.name)


def release(root: Path, out: Path, trial: bool) -> Source:
    """Build and check a release, and put it into a folder; nothing is left there if anything is refused.

    Raises:
        Refused: a reason a line.
    """
    if not trial:
        refuse_changes(root)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source = copied_source(root, work / "tree")
        made = work / "made"
        checked_archives(source, made, work)
        check_metadata(source, made)
        write_licences(source.tree, made)
        write_bills(source.tree, source.version, made)
        (made / SUMS).write_text(sums(made))
        replace(made, out)
    return source


def main() -> int:
    """See the module's text; the exit code is 1 if the release is refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--trial", action="store_true", help="accept a tree that is not clean")
    arguments = parser.parse_args()
    try:
        source = release(ROOT, arguments.out, arguments.trial)
    except Refused as exc:
        print(f"refused: {exc}", file=sys.stderr)
        return 1
    print((arguments.out / SUMS).read_text(), end="")
    print(f"warpsmith {source.version} ({source.commit}) is in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
