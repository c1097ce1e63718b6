"""A user's own command with and without an export, in turns: what the export is worth there."""

import io
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.base import Frozen
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.domain.templates.outcome import Interval, Verdict
from warpsmith.errors import InvalidInput
from warpsmith.measure.statistics import speedup_interval, verdict_of, width_of_blocks
from warpsmith.verify.compare import compare

LEAST_PAIRS = 5
"""Fewer pairs say little of the noise of the command itself."""
SHOWN = 2000
"""Characters of a failed command's output that are shown."""


class Proof(Frozen):
    """Result of a proof, written to `prove.json` of the export."""

    command: tuple[str, ...]
    metric: str
    """`seconds`, or the expression that found a number in what the command printed."""
    without: tuple[float, ...]
    """The figure of every run without the export, in order."""
    with_export: tuple[float, ...]
    speedup: Interval
    """Ratio by which the figure is better with the export, with its 95 % interval over pairs."""
    aa_width: float
    """Half width of the interval of the runs without the export against each other: the noise, which a claim
    must exceed."""
    verdict: Verdict
    outputs: str
    """`equal`, how they differ, or `not compared`."""


@dataclass(frozen=True)
class ProofSettings:
    """Command of a proof, and the way in which its runs are judged.

    Args:
        export: folder that `warpsmith export` wrote.
        command: the user's command.
        pairs: runs without and with the export.
        metric: regular expression with one group, a number in the command's output; empty: its seconds.
        more_is_better: of that number.
        outputs: file that the command writes, compared between the two; None: nothing is compared.
        rtol: relative tolerance of numbers in it, if it is a `.npy` file; else all bytes must be equal.
        timeout_s: seconds of one run.
    """

    export: Path
    command: Sequence[str]
    pairs: int = 8
    metric: str = ""
    more_is_better: bool = False
    outputs: Path | None = None
    rtol: float = 0.0
    timeout_s: float = 3600.0


def prove(wanted: ProofSettings, tell: Callable[[str], None] | None = None) -> Proof:
    """Run the command in turns; one run of each kind goes before, and counts for the outputs alone.

    With the export, `WARPSMITH_EXPORT` is its folder, and the first of `PYTHONPATH`. Without, it is empty and
    `WARPSMITH_OFF` is 1, by which an export serves the kernel as it was.

    Args:
        tell: called with a line after every run.

    Raises:
        InvalidInput: the command failed, printed no number, or wrote no outputs; or an option is of no use.
    """
    pattern = _checked(wanted)
    tell = tell or (lambda _: None)
    kept: dict[bool, bytes] = {}
    figures: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(wanted.pairs + 1):
        for on in (False, True) if turn % 2 == 0 else (True, False):
            found = _run(wanted, on, pattern)
            words = "with" if on else "without"
            if turn == 0:
                kept[on] = b"" if wanted.outputs is None else wanted.outputs.read_bytes()
                tell(f"{words} the export: {found:g} (warm-up)")
                continue
            figures[on].append(found)
            tell(f"{words} the export: {found:g} ({turn} of {wanted.pairs})")
    before, after = ([[f] for f in figures[on]] for on in (False, True))
    less_is_better = not (pattern and wanted.more_is_better)
    speedup = speedup_interval(before, after) if less_is_better else speedup_interval(after, before)
    width = width_of_blocks(before)
    return Proof(
        command=tuple(wanted.command),
        metric=wanted.metric or "seconds",
        without=tuple(figures[False]),
        with_export=tuple(figures[True]),
        speedup=speedup,
        aa_width=width,
        verdict=verdict_of(speedup, width),
        outputs=_difference(wanted, kept),
    )


def _checked(wanted: ProofSettings) -> re.Pattern[str] | None:
    if not (wanted.export / "evidence.json").is_file():
        raise InvalidInput("--export", f"{wanted.export} is no export; name a folder that `export` wrote")
    if not wanted.command:
        raise InvalidInput("COMMAND", "give your own command after `--`, such as `-- python program.py`")
    if wanted.pairs < LEAST_PAIRS:
        raise InvalidInput("--pairs", f"is {wanted.pairs}; an interval needs {LEAST_PAIRS} at least")
    if not wanted.metric:
        return None
    try:
        pattern = re.compile(wanted.metric)
    except re.error as exc:
        raise InvalidInput("--metric", f"is no regular expression: {exc}") from exc
    if pattern.groups != 1:
        raise InvalidInput("--metric", r"needs one group for the number, such as `us per step: ([\d.]+)`")
    return pattern


def _run(wanted: ProofSettings, on: bool, pattern: re.Pattern[str] | None) -> float:
    """The figure of one run."""
    if wanted.outputs is not None:
        wanted.outputs.unlink(missing_ok=True)
    began = time.perf_counter()
    try:
        done = subprocess.run(
            wanted.command,
            env=_environment(wanted.export, on),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=wanted.timeout_s,
        )
    except OSError as exc:
        raise InvalidInput("COMMAND", f"{wanted.command[0]} does not start: {exc.strerror}") from exc
    except subprocess.TimeoutExpired as exc:
        raise InvalidInput("COMMAND", f"did not end within {wanted.timeout_s:g} s") from exc
    seconds = time.perf_counter() - began
    words = "with" if on else "without"
    if done.returncode:
        end = done.stdout[-SHOWN:]
        raise InvalidInput("COMMAND", f"ended with {done.returncode} {words} the export:\n{end}")
    if wanted.outputs is not None and not wanted.outputs.is_file():
        raise InvalidInput("--outputs", f"the command wrote no {wanted.outputs} {words} the export")
    if pattern is None:
        return seconds
    match = pattern.search(done.stdout)
    try:
        return float(match.group(1)) if match else _no_number(wanted, done.stdout)
    except ValueError:
        return _no_number(wanted, done.stdout)


def _no_number(wanted: ProofSettings, text: str) -> float:
    raise InvalidInput(
        "--metric", f"{wanted.metric!r} finds no number in what the command printed:\n{text[-500:]}"
    )


def _environment(export: Path, on: bool) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("WARPSMITH_OFF", "WARPSMITH_EXPORT")}
    place = str(export.absolute())
    path = os.pathsep.join(filter(None, (place, kept.get("PYTHONPATH", ""))))
    chosen = {"WARPSMITH_EXPORT": place} if on else {"WARPSMITH_EXPORT": "", "WARPSMITH_OFF": "1"}
    return kept | {"PYTHONPATH": path} | chosen


def _difference(wanted: ProofSettings, kept: Mapping[bool, bytes]) -> str:
    if wanted.outputs is None:
        return "not compared"
    if kept[False] == kept[True]:
        return "equal"
    if wanted.outputs.suffix != ".npy":
        return f"{wanted.outputs} differs"
    before, after = (_array(wanted.outputs, kept[on]) for on in (False, True))
    if before.shape != after.shape or before.dtype != after.dtype:
        return f"{before.dtype} {before.shape} and {after.dtype} {after.shape}"
    found = compare(after.ravel(), before.ravel(), Tolerance(rtol=wanted.rtol, atol=0.0))
    return "equal" if not found.wrong else found.detail


def _array(path: Path, data: bytes) -> NDArray[np.generic]:
    try:
        found: NDArray[np.generic] = np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError as exc:
        raise InvalidInput("--outputs", f"{path} is no .npy file of numbers: {exc}") from exc
    if found.dtype.kind not in "biuf":
        raise InvalidInput("--outputs", f"{path} holds {found.dtype}; write real numbers")
    return found
