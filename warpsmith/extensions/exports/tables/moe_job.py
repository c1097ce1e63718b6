"""Jobs that tune an engine's fused MoE kernel for its table.

Which rows a block reads depends on its height, and an engine sorts tokens for the height that it runs. So the
entry is a function of ours that gets them sorted for every height, and takes those of its own. It runs the
layer's first product; the engine takes the same row for the second one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.domain.kernels.triton_function import TritonFunction, kernel_named
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.rendering import rendered
from warpsmith.extensions.exports.tables.engines import ENGINES, NEEDED, MoeShape
from warpsmith.extensions.exports.tables.known_tables import known_winners
from warpsmith.extensions.exports.tables.model_config import SIZES, MoeLayer

KERNEL = "fused_moe_kernel"
TRIALS = 48
"""Evaluations of a batch size, about 3 % of a sweep."""
SWEPT = ((16, 32, 64, 128), (32, 64, 128, 256), (64, 128, 256), (1, 16, 32, 64), (4, 8), (2, 3, 4, 5))
"""Values of `NEEDED` that engines' own tuners try."""
_SORTED = {"sorted_token_ids_ptr": "rows", "expert_ids_ptr": "experts", "num_tokens_post_padded_ptr": "count"}
_SWAPPING = re.compile(r"H(100|200|800|20)(?!\d)")
"""Devices on which engines swap the operands of fp8 products of few rows."""
_VLLM_IMPORT = re.compile(r"^from vllm\.triton_utils import .*$", re.MULTILINE)


@dataclass(frozen=True)
class MoeWork:
    """A layer's table, for one engine."""

    form: str
    """Format of the table's export: `vllm-config` or `sglang-config`."""
    layer: MoeLayer
    device: str
    """Name of the device; empty: not known."""
    skew: float = 0.0
    """How unevenly tokens are routed; see `Routing.skew`."""
    known: Path | None = None
    """Folder of an engine's tables, whose winners say where to begin."""
    tried: Mapping[int, Sequence[Configuration]] | None = None
    """All that is tried besides the default, by batch size, where what a row lacks is the default's; None: a
    search finds them."""


def moe_jobs(work: MoeWork, text: str, where: str) -> Iterator[dict[str, Any]]:
    """A job for each class of batch sizes with one default of the engine, as a job has one baseline.

    Args:
        text: a file with the engine's kernel.
        where: its name, for messages.

    Raises:
        InvalidInput: the kernel has a parameter that is not known here, or cannot run such weights.
    """
    shape, known = work.layer.shape, ENGINES[work.form].default
    rule = known(shape.experts, shape.dtype, shape.block_shape) if known else None
    is_known = shape.dtype in ("", "fp8_w8a8") or (shape.dtype == "int8_w8a8" and shape.per_channel)
    if rule is None or not is_known:
        words = "give a layer of 16 bits, fp8_w8a8, or int8_w8a8 with a scale for each channel (config.json)"
        raise InvalidInput("dtype", f"no job is made for these weights of {shape.dtype}; {words}")
    if shape.dtype == "fp8_w8a8" and not work.device:
        raise InvalidInput("--device", "decides how fp8 is multiplied; give its name, such as 'NVIDIA H200'")
    text, kernel = _kernel(text, where)
    classes: dict[tuple[Any, ...], list[int]] = {}
    for size in SIZES if work.tried is None else sorted(work.tried):
        classes.setdefault(tuple(rule.configuration(size).items()), []).append(size)
    winners = known_winners(work.known, shape, work.device) if work.known and work.tried is None else []
    told = {"known_winners": [winner.model_dump() for winner in winners]}
    return (_job(work, dict(row), sizes, text, kernel) | told for row, sizes in classes.items())


def _kernel(text: str, where: str) -> tuple[str, TritonFunction]:
    # `tl` and `triton` of vLLM are Triton's own, which a file by itself has to say.
    text = _VLLM_IMPORT.sub("import triton\nimport triton.language as tl", text)
    try:
        kernel = kernel_named(text, KERNEL)
    except ValueError as exc:
        raise InvalidInput("--kernel", f"{where} {exc}") from exc
    if kernel is None:
        raise InvalidInput("--kernel", f"{where} has no @triton.jit function {KERNEL}; give one that has")
    return text, kernel


def _job(
    work: MoeWork, default: Configuration, sizes: list[int], text: str, kernel: TritonFunction
) -> dict[str, Any]:
    shape = work.layer.shape
    tried = {size: _completed(work, size, default) for size in sizes if work.tried}
    values = _values(shape, default, [row for rows in tried.values() for row in rows])
    swaps = shape.dtype == "fp8_w8a8" and _SWAPPING.search(work.device)
    conditions = [_only(size, rows) for size, rows in tried.items()]
    if swaps and shape.block_shape and work.form == "sglang-config":
        conditions.append(_fitting(shape.block_shape[0]))
    trials = sum(map(len, tried.values())) or TRIALS * len(sizes)
    facts = {"work": work, "sizes": sizes, "values": values, "default": default, "swaps": swaps}
    facts |= {"conditions": conditions, "trials": trials}
    made: dict[str, Any] = json.loads(rendered("moe_job.json.jinja", facts))
    made["kernel"]["source"] = text + _entry(made, kernel, values["BLOCK_SIZE_M"])
    return made


def _entry(made: dict[str, Any], kernel: TritonFunction, heights: Sequence[int]) -> str:
    """The function that calls the kernel; takes `bound` out of a job."""
    names = [argument["name"] for argument in made["kernel"]["arguments"]]
    bound = {name: value for value, listed in made.pop("bound") for name in listed.split()}
    bound |= _SORTED | {name: name for name in (*names, *NEEDED[:4])}
    if unknown := [p.name for p in kernel.parameters if p.name not in bound and p.default is None]:
        words = f"{KERNEL} has {', '.join(unknown)}, which is not known here; give that of another version"
        raise InvalidInput("--kernel", words)
    passed = {p.name: bound[p.name] for p in kernel.parameters if p.name in bound}
    parts = {"names": names, "tiles": NEEDED[:4], "heights": heights, "passed": passed}
    return rendered("moe_entry.py.jinja", parts)


def _completed(work: MoeWork, size: int, default: Configuration) -> list[Configuration]:
    return [default, *({**default, **row} for row in (work.tried or {}).get(size, ()))]


def _values(shape: MoeShape, default: Configuration, tried: Sequence[Configuration]) -> dict[str, list[int]]:
    """Values of the parameters: those of what is tried, or of a search."""
    if tried:
        return {n: sorted({int(row[n]) for row in tried}) for n in NEEDED}
    values = {n: sorted({*own, int(default[n])}) for n, own in zip(NEEDED, SWEPT, strict=True)}
    return values | ({"BLOCK_SIZE_K": [shape.block_shape[1]]} if shape.block_shape else {})


def _only(size: int, tried: Sequence[Configuration]) -> dict[str, str]:
    """A constraint that allows these configurations on a batch size."""
    rows = dict.fromkeys(tuple(int(row[n]) for n in NEEDED) for row in tried)
    expression = f"M != {size} or ({','.join(NEEDED)}) in ({','.join(map(str, rows))},)"
    return {"expression": expression, "reason": "these alone are tried"}


def _fitting(columns: int) -> dict[str, str]:
    expression = f"BLOCK_SIZE_M >= 64 or BLOCK_SIZE_N < 64 or BLOCK_SIZE_N > {columns}"
    reason = "SGLang's kernel does not compile with swapped operands within a block of scales (0.5.23)"
    return {"expression": expression, "reason": reason}
