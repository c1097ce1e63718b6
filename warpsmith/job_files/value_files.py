"""Files of values that arguments are drawn from, read by the client and sent with the job."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpsmith.domain.arguments.draw import MAX_FILE_BYTES
from warpsmith.job_files.finding import Finding
from warpsmith.system.shell_words import shell_folder


def outside(path: Path, folder: Path, allowed: Sequence[Path]) -> str:
    """Refusal of a file that a job names: links followed, it lies in no folder from which files are read.

    Args:
        folder: folder of the job file.
        allowed: further folders, which the caller and not the job names.
    """
    try:
        found = path.resolve()
    except (OSError, ValueError, RuntimeError):
        return ""  # reading it says what is wrong
    if any(found.is_relative_to(each.resolve()) for each in (folder, *allowed)):
        return ""
    allowing = f"allow its folder with -I {shell_folder(found.parent)}"
    return f"{path} lies outside of the job file's folder; {allowing} if it may be sent"


def with_values(
    kernel: Mapping[str, Any], folder: Path, allowed: Sequence[Path] = ()
) -> tuple[Mapping[str, Any], list[Finding]]:
    """The kernel of a job file with the files that its draws name, and what is wrong with these.

    Args:
        folder: folder of the job file, to which names are relative.
        allowed: further folders from which files may be read.
    """
    findings: list[Finding] = []
    changed: dict[str, Any] = {}
    folders = (folder, *allowed)
    for part in ("arguments", "buffers"):
        listed = kernel.get(part)
        if not isinstance(listed, list | tuple):
            continue
        places = [f"kernel.{part}.{n}.draw" for n in range(len(listed))]
        read = [_argument(a, f, folders, findings) for a, f in zip(listed, places, strict=True)]
        if any(a is not b for a, b in zip(read, listed, strict=True)):
            changed[part] = read
    return {**kernel, **changed} if changed else kernel, findings


def _argument(argument: Any, field: str, folders: Sequence[Path], findings: list[Finding]) -> Any:
    draw = argument.get("draw") if isinstance(argument, Mapping) else None
    if not isinstance(draw, Mapping) or not isinstance(draw.get("file"), str) or draw.get("data"):
        return argument
    path = folders[0] / draw["file"]
    refusal = outside(path, folders[0], folders[1:])
    if refusal:
        findings.append(Finding(f"{field}.file", refusal))
        return argument
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        findings.append(Finding(f"{field}.file", f"{path} cannot be read: {reason}"))
        return argument
    if len(content) > MAX_FILE_BYTES:
        words = f"{path} has {len(content)} bytes; at most {MAX_FILE_BYTES}"
        findings.append(Finding(f"{field}.file", words))
        return argument
    found = hashlib.sha256(content).hexdigest()
    if draw.get("sha256", found) != found:
        words = f"{path} has the hash {found}; its values are not those that the job was written for"
        findings.append(Finding(f"{field}.sha256", words))
        return argument
    data = {"data": base64.b64encode(content).decode(), "sha256": found}
    return {**argument, "draw": {**draw, **data, "file": path.name}}
