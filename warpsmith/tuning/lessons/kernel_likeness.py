"""Similarity of two kernels by their sources. Pure.

The sketch is MinHash (Broder, "On the resemblance and containment of documents", 1997) with multiply-shift
hashes over runs of tokens.
"""

import re
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.source.lexing.tokens import tokenise

Sketch = npt.NDArray[np.uint16]
"""The last 16 bits of the least hashes, `SKETCH_SIZE` of them."""

SKETCH_SIZE = 64
"""The standard error of a likeness is at most 1 / (2 * sqrt(64)) = 0.06."""
RUN = 4
"""Tokens in a run: long enough to hold an operator with its operands."""
_TYPES = re.compile(
    r"(?:half|float|double|bfloat16|__half|__nv_bfloat16|nv_bfloat16|__nv_fp8_e4m3|__nv_fp8_e5m2)(?:2|4|8|16)?"
)
_HASHES = np.random.default_rng(20261125).integers(
    1, np.iinfo(np.uint64).max, size=(2, SKETCH_SIZE), dtype=np.uint64
)
_FACTORS, _OFFSETS = _HASHES[0] | np.uint64(1), _HASHES[1]


def sketch(kernel: Kernel) -> Sketch:
    """A sketch of the code, to be compared by `likeness`. Types of numbers count as equal, and so do names of
    variables and parameters: siblings differ in them."""
    arguments = (f"argument {a.role.value} {len(a.shape)}" for a in kernel.declared)
    runs = {zlib.crc32(run.encode()) for run in (*_runs(list(_words(kernel.text))), *arguments)}
    values = np.fromiter(sorted(runs), dtype=np.uint64)
    with np.errstate(over="ignore"):
        hashed = values[:, None] * _FACTORS + _OFFSETS
    least: Sketch = (hashed >> np.uint64(16)).min(axis=0).astype(np.uint16)  # 16 bits of 48 tell most apart
    return least


def likeness(one: Sketch, others: Sketch) -> npt.NDArray[np.float64]:
    """Share of equal runs of tokens in two kernels' code, estimated, from 0 to 1.

    Args:
        one: shape (`SKETCH_SIZE`,).
        others: shape (kernels, `SKETCH_SIZE`); the result has shape (kernels,).
    """
    same: npt.NDArray[np.float64] = (others == one).mean(axis=1)
    return same


def _words(text: str) -> Iterator[str]:
    """Tokens, in which a name that is not called, has no member and is none stands for any name."""
    tokens = [t for t in tokenise(text).items if t.kind != "directive"]
    texts = ["", *(t.text for t in tokens), ""]
    for token, before, after in zip(tokens, texts, texts[2:], strict=False):
        if token.kind != "name" or after in ("(", ".", "::") or before == "." or _KEPT.fullmatch(token.text):
            yield token.text
        else:
            yield "number_t" if _TYPES.fullmatch(token.text) else "name"


_KEPT = re.compile(
    r"""if|else|for|while|do|return|const|static|inline|extern|template|typename|struct|int|unsigned|char|short
    |long|bool|void|size_t|uint|__global__|__device__|__kernel|kernel|__global|global|__local|local
    |__shared__|__restrict__|restrict|__constant|constant|__private|volatile""",
    re.X,
)
"""Names of the language."""


def _runs(words: list[str]) -> Iterator[str]:
    for start in range(max(1, len(words) - RUN + 1)):
        yield " ".join(words[start : start + RUN])
