"""Tables that engines read: batch size -> configuration of a kernel that the engine itself has.

An engine takes the row whose key is nearest to the batch size: vLLM and SGLang by |key - batch|, kernels of
the Hugging Face hub by |log(batch / key)|. So a table has no gaps and no ends. A row serves every batch size
up to the middle between its key and the next; the first row serves all below it, and the last all above. With
rows 16 and 64, 41 runs what was measured at 64, and 4096 does, too. What the engine does without a table is
lost as soon as there is one row.

So a row is written only where a comparison says "faster", and what must not be its neighbours' is pinned:

- A workload without a gain gets the job's default configuration, that of the kernel as posted.
- `pin=1,4096`: these keys get the engine's own default (`engine_defaults`), which serves up to the middle.
- `pin=others`: rows of the engine's default at both sides of each measured key and of each step of the
  default. Each measured batch size then has its row, and every other one runs what it ran without a table.
- `pin={"1": {...}}`: rows that the user gives, in the engine's form. If the engine ships a table for the
  shape, that table is its own default, and its rows are these.

A verified row wins over a pin, and a pin over the job's default configuration.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from warpsmith.domain.device import is_amd
from warpsmith.domain.templates.outcome import Comparison, Verdict
from warpsmith.domain.templates.space import Configuration, configuration_key, is_shape
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.engine_defaults import DefaultRule
from warpsmith.extensions.exports.tables.engine_options import OPTION, TableOptions, triton_version
from warpsmith.extensions.exports.tables.engines import ENGINES, Engine, block_shape, dtype_word
from warpsmith.http_models import DispatchEntry, JobResult

Origin = Literal["verified", "job's default", "engine's default", "given"]
_GIVEN = TypeAdapter(dict[str, Configuration])


@dataclass(frozen=True)
class Row:
    """Configuration of a table for one batch size, with its origin."""

    configuration: Configuration
    origin: Origin
    comparison: Comparison | None = None
    """Comparison of the winner with the user's kernel on this workload; None without one."""

    @property
    def is_tuned(self) -> bool:
        """True if it was measured as faster; else it is a pin."""
        return self.origin == "verified"


@dataclass(frozen=True)
class EngineTable:
    """A table for one engine."""

    engine: Engine
    path: str
    batch: str
    """The dimension whose values are the keys."""
    rows: Mapping[int, Row]
    """By batch size, ascending."""
    triton: str
    """Version of Triton; empty: not known."""
    default_source: str
    """Engine and version whose default rule made pins; empty: none did."""

    def text(self) -> str:
        """The file, as the engine reads it."""
        head = {"triton_version": self.triton} if self.engine.versioned and self.triton else {}
        rows = {str(key): row.configuration for key, row in self.rows.items()}
        return json.dumps({**head, **rows}, indent=4) + "\n"

    def evidence(self) -> dict[str, Any]:
        """Per key, whether it is tuned or pinned, why, and the batch sizes that the engine serves with it."""
        keys = list(self.rows)
        ends = [*(_last_served(self.engine, a, b) for a, b in itertools.pairwise(keys)), None]
        starts = [1, *(end + 1 for end in ends if end is not None)]
        return {
            "file": self.path,
            "engine": self.engine.title,
            "batch": self.batch,
            "lookup": self.engine.lookup,
            "triton_version": self.triton or None,
            "default_rule": self.default_source or None,
            "rows": [
                {
                    "key": key,
                    "kind": "tuned" if row.is_tuned else "pinned",
                    "configuration_of": row.origin,
                    "speedup": row.comparison.speedup.model_dump() if row.comparison else None,
                    "verdict": row.comparison.verdict.value if row.comparison else None,
                    "serves": [start, end],
                }
                for (key, row), start, end in zip(self.rows.items(), starts, ends, strict=True)
            ],
        }


def engine_table(
    result: JobResult, form: str, given: Mapping[str, str], more: Sequence[JobResult] = ()
) -> EngineTable:
    """The table of a result, or of several that have different batch sizes of one table.

    Args:
        form: name of the format in `ENGINES`.
        given: options by key, as `--table` takes them.
        more: the other results.

    Raises:
        InvalidInput: an option is missing or wrong, the results have no row for the engine, or the engine
            could not read a row, or would not run it as it was measured; or two results do not fit.
    """
    engine = ENGINES[form]
    options = TableOptions(result, given, form, engine.keys)
    if not result.device or any(c in result.device for c in ",;\n"):
        raise InvalidInput(
            "--as", f"a table is for one device, and this result has {result.device!r}; tune for one device"
        )
    batch = _batch(result, options)
    path = engine.place(result, options)
    measured = dict(_measured(result, batch))
    for other in more:
        _require_same_table(
            result, other, path, engine.place(other, TableOptions(other, given, form, engine.keys))
        )
        for key, row in _measured(other, batch):
            if key in measured:
                raise InvalidInput("JOB", f"{batch} {key} is in two jobs; give one of them")
            measured[key] = row
    for key, row in measured.items():
        where = f"row {key} ({row.origin})"
        _check_fields(engine, row.configuration, where)
        _check_depth(engine, row.configuration, where, options)
    if not any(row.is_tuned for row in measured.values()):
        raise InvalidInput(
            "", "no workload of the result is verified as faster, so the engine's own default stays; no table"
        )
    rule = _rule(engine, result, options) if options.text("pin") else None
    pins = _pins(engine, options, measured, rule)
    rows = measured | pins | {key: row for key, row in measured.items() if row.is_tuned}
    version = triton_version(result, options) if options.takes("triton") else ""
    return EngineTable(engine, path, batch, dict(sorted(rows.items())), version, rule.source if rule else "")


def _require_same_table(result: JobResult, other: JobResult, path: str, place: str) -> None:
    if place != path:
        raise InvalidInput("JOB", f"{other.id} is for {place}, and {result.id} for {path}; export them apart")
    if other.compiler != result.compiler:
        words = f"{other.id} was compiled by {other.compiler}, and {result.id} by {result.compiler}"
        raise InvalidInput("JOB", f"{words}; tune one of them again")


def _batch(result: JobResult, options: TableOptions) -> str:
    """The dimension that is the batch; by default the only one that varies.

    Raises:
        InvalidInput: none can be told, or another one varies.
    """
    workloads = result.job.workloads
    names = sorted(workloads[0].dimensions)
    varying = [n for n in names if len({w.dimensions[n] for w in workloads}) > 1]
    alone = varying if varying else names
    name = options.text("batch") or (alone[0] if len(alone) == 1 else "")
    if not name:
        raise options.problem("batch", f"is missing: which of {', '.join(alone)} is the batch size")
    if name not in names:
        raise options.problem("batch", f"{name} is no dimension of the job; it has {', '.join(names)}")
    others = [n for n in varying if n != name]
    if others:
        raise InvalidInput(
            f"{OPTION} batch",
            f"{', '.join(others)} varies between the workloads, too, and a table is for one value of it; "
            "tune one job for each value",
        )
    return name


def _measured(result: JobResult, batch: str) -> Iterator[tuple[int, Row]]:
    """A row for each workload: the verified winner, or the job's default configuration."""
    entries = {e.workload: e for e in result.dispatch}
    for workload in result.job.workloads:
        entry = entries.get(workload.key)
        of_it = [c for c in result.comparisons if c.workload == workload.key]
        found = next((c for c in of_it if entry and _is_verified(c, entry)), None)
        if found is not None and entry is not None and entry.configuration is not None:
            _require_own_source(result, entry)
            own = {n: v for n, v in entry.configuration.items() if not is_shape(n)}
            row = Row(own, "verified", found)
        else:
            row = Row(result.job.space.defaults, "job's default", next(iter(of_it), None))
        yield workload.dimensions[batch], row


def _is_verified(comparison: Comparison, entry: DispatchEntry) -> bool:
    """True if the configuration that is served is the one that was found faster."""
    if entry.configuration is None or comparison.verdict is not Verdict.FASTER:
        return False
    same = comparison.configuration_key == configuration_key(entry.configuration)
    return same and comparison.speedup.low > 1


def _require_own_source(result: JobResult, entry: DispatchEntry) -> None:
    """An engine runs its own kernel, so that only parameters may differ from what was posted."""
    candidate = next((c for c in result.candidates if c.id == entry.candidate), None)
    if candidate is None or candidate.applied or candidate.source != result.job.kernel.source:
        raise InvalidInput(
            "--as",
            f"the winner on {entry.workload} has a changed source, which no engine runs; tune with "
            "strategy: search and rewrite: {enabled: false}",
        )


def _check_fields(engine: Engine, row: Configuration, where: str) -> None:
    """Refuse a row that the engine cannot read."""
    missing = [n for n in engine.needed if n not in row]
    if missing:
        raise InvalidInput(
            "parameters",
            f"{where} has no {', '.join(missing)}, which {engine.title} needs; declare each as a parameter, "
            "with one value if it is fixed",
        )
    unknown = [] if engine.known is None else sorted(set(row) - set(engine.needed) - set(engine.known))
    if unknown:
        raise InvalidInput(
            "parameters",
            f"{where} has {', '.join(unknown)}, which {engine.title} does not know; fix it in the kernel, or "
            "use hf-config",
        )
    odd = [n for n in engine.needed if isinstance(row[n], bool) or not isinstance(row[n], int)]
    if odd:
        raise InvalidInput("parameters", f"{where} has {odd[0]}={row[odd[0]]!r}; it must be a whole number")


def _check_depth(engine: Engine, row: Configuration, where: str, options: TableOptions) -> None:
    """Refuse a row that the engine would not run as it was measured, because of its block shape."""
    shape, k = block_shape(options) if options.takes("block_shape") else None, row.get("BLOCK_SIZE_K")
    if shape is None or not isinstance(k, int):
        return
    if k % shape[1]:
        raise InvalidInput(
            "parameters.BLOCK_SIZE_K", f"{where} has {k}, which is no multiple of block_shape's {shape[1]}"
        )
    if engine.cuts_k and k > min(shape):
        raise InvalidInput(
            "parameters.BLOCK_SIZE_K",
            f"{where} has {k}, and {engine.title} would run {min(shape)}, the smaller side of block_shape; "
            f"leave values above {min(shape)} out",
        )


def _rule(engine: Engine, result: JobResult, options: TableOptions) -> DefaultRule | None:
    """The engine's default; None if the pins are given as rows.

    Raises:
        InvalidInput: the rule is not known here.
    """
    if options.text("pin").startswith("{"):
        return None
    rule = None
    has_amd = is_amd(result.architecture) or re.match(r"AMD|Radeon", result.device)
    if engine.default is not None and not has_amd:
        experts = options.number("E", "the number of experts on one device")
        rule = engine.default(experts, dtype_word(options), block_shape(options))
    if rule is None:
        raise InvalidInput(
            f"{OPTION} pin",
            f"the default of {engine.title} for this is not known here; give the rows: "
            """--table 'pin={"1": {"BLOCK_SIZE_M": 16, ...}}'""",
        )
    return rule


def _pins(
    engine: Engine, options: TableOptions, measured: Mapping[int, Row], rule: DefaultRule | None
) -> dict[int, Row]:
    """The pins that were asked for: keys of the engine's default, or rows as they were given."""
    asked = options.text("pin")
    if rule is None:
        return _given(engine, options, asked) if asked else {}
    keys = around(measured, rule.steps) if asked == "others" else options.numbers("pin")
    return {key: Row(rule.configuration(key), "engine's default") for key in keys}


def around(measured: Mapping[int, Row], steps: Sequence[int]) -> list[int]:
    """Keys with which every batch size that was not measured is nearest to one of its own step."""
    sides = {k + d for k in measured for d in (-1, 1)} | {s - d for s in steps for d in (0, 1)}
    return sorted(k for k in sides if k >= 1 and k not in measured)


def _given(engine: Engine, options: TableOptions, text: str) -> dict[int, Row]:
    """Rows that the user gives in the engine's own form."""
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            found.pop("triton_version", None)
        rows = _GIVEN.validate_python(found)
    except (ValueError, ValidationError) as exc:
        problem = f"is no table of rows as the engine reads it ({type(exc).__name__})"
        raise options.problem("pin", problem) from exc
    made = {}
    for key, row in rows.items():
        if not (key.isdecimal() and int(key) >= 1):
            raise options.problem("pin", f"{key!r} is no batch size")
        _check_fields(engine, row, f"the pin {key}")
        made[int(key)] = Row(row, "given")
    return made


def _last_served(engine: Engine, key: int, after: int) -> int:
    """The last batch size for which the engine takes a key and not the one after it."""
    low, high = key, after - 1
    while low < high:
        middle = (low + high + 1) // 2
        if engine.distance(key, middle) <= engine.distance(after, middle):
            low = middle
        else:
            high = middle - 1
    return low
