"""Fingerprint that identifies a kernel across jobs. Pure."""

import hashlib
import json

from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.source.lexing.tokens import without_comments


def fingerprint(kernel: Kernel) -> str:
    """Key that is equal for kernels that differ in comments and blanks only: same code, headers, arguments,
    launch and options. 64 hexadecimal digits."""
    rest = kernel.model_dump(mode="json", exclude={"source", "source_file", "files", "include_dirs"})
    for argument in (*rest["arguments"], *rest["buffers"]):
        if argument["kept"] is None:
            del argument["kept"]  # kernels that are known have no such field
    files = {name: _code(text) for name, text in sorted(kernel.files.items())}
    text = json.dumps([_code(kernel.text), files, rest], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _code(text: str) -> str:
    return " ".join(without_comments(text).split())
