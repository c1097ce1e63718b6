"""What an archive of a release holds, and what is wrong with it."""

import hashlib
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

PACKED = ("agents", "api", "db", "examples", "web", "worker")
BESIDE = ("scripts/build_hook.py", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", ".gitignore")
"""Files of a source distribution outside of the packages."""
METADATA = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
NEVER = re.compile(
    r"(^|/)(tests?|results|shared|secrets|\.git|\.env[^/]*|[^/]*\.(pem|key|pyc|sqlite3?))(/|$)"
)
"""Paths that belong to no archive, although the tree holds some of them."""
SECRETS = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b"
    rb"|\bgh[pousr]_[A-Za-z0-9]{36}|\bsk-[A-Za-z0-9_-]{40,}"
)


def read_archive(path: Path) -> dict[str, bytes]:
    """Files of a wheel, or of a gzipped tar, by name; without the top folder of a source distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            # A name that no file of the tree has: links do not belong there.
            opened = archive.extractfile(member) if member.isfile() else None
            found[member.name] = opened.read() if opened is not None else b""
    tops = {name.split("/", 1)[0] for name in found}
    if len(tops) == 1 and all("/" in name for name in found):
        found = {name.split("/", 1)[1]: data for name, data in found.items()}
    return found


def in_wheel(tree: Iterable[str], version: str) -> set[str]:
    """Names that a wheel must have, from those of the tree: applications and examples lie below the core."""
    found = {f"warpsmith-{version}.dist-info/{name}" for name in METADATA}
    for name in tree:
        top = name.split("/", 1)[0]
        if top == "warpsmith":
            found.add(name)
        elif top in PACKED:
            found.add(f"warpsmith/_apps/{name}")
    return found


def in_sdist(tree: Iterable[str]) -> set[str]:
    """Names that a source distribution must have."""
    tops = ("warpsmith", *PACKED)
    return {name for name in tree if name.split("/", 1)[0] in tops or name in BESIDE} | {"PKG-INFO"}


def in_context(tree: Iterable[str], dockerfile: str) -> set[str]:
    """Names that the context of the images must have: the Dockerfile, and what it copies of the tree."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", dockerfile.replace("\\\n", " "), re.MULTILINE)
    copied = {PurePosixPath(source) for line in lines for source in line.split()[:-1]}
    files = (PurePosixPath(name) for name in tree)
    return {"Dockerfile"} | {str(file) for file in files if copied & {file, *file.parents}}


def content_problems(files: Mapping[str, bytes], expected: set[str]) -> Iterator[str]:
    """A line for each file that is missing, does not belong there, or holds a secret."""
    yield from (f"{name} is missing" for name in sorted(expected - files.keys()))
    for name, data in sorted(files.items()):
        if name not in expected or NEVER.search(name):
            yield f"{name} does not belong there"
        if SECRETS.search(data):
            yield f"{name} holds what looks like a key"


def differences(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> Iterator[str]:
    """A line for each file that two archives do not share, byte by byte."""
    for name in sorted(one.keys() | other.keys()):
        if name not in one or name not in other:
            yield f"{name} is in one of them only"
        elif one[name] != other[name]:
            yield f"{name} differs"


def sha256(path: Path) -> str:
    """Hash of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
