"""Jobs of SGLang's fused MoE kernel: the first matrix product of a layer, in half precision.

Which rows a block reads is decided by how tokens are sorted: every expert's tokens are padded to a whole
number of blocks of `BLOCK_SIZE_M` rows. A job therefore has one batch size and one block height.
"""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.job import Job

NUMBERS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
_OFF: tuple[str, ...] = ("use_fp8_w8a8", "use_int8_w8a8", "use_int8_w8a16", "per_channel_quant")
_OFF += ("c_sorted", "swap_ab")
_OFF += ("FUSE_ADD_TO_OUTPUT", "MASK_OUTPUT", "FUSE_SUM_ALL_REDUCE", "MUL_ROUTED_WEIGHT")
_NULL = ("a_desc", "b_desc", "bias_ptr", "a_scale_ptr", "b_scale_ptr", "add_mask_ptr")
_ZERO = (
    "stride_bias_e",
    "stride_bias_n",
    "stride_asm",
    "stride_ask",
    "stride_bse",
    "stride_bsk",
    "stride_bsn",
)


@dataclass(frozen=True)
class Layer:
    """A layer's extents."""

    name: str
    experts: int
    rows: int
    """Rows of an expert's weights: twice the intermediate size on one device."""
    hidden: int
    top_k: int


def default_configuration(layer: Layer, tokens: int) -> dict[str, int]:
    """What SGLang 0.5.23 takes for half precision without a table (`get_default_config`)."""
    values = (16, 32, 64, 1, 4, 3) if tokens <= layer.experts else (64, 64, 32, 8, 4, 3)
    return dict(zip(NUMBERS, values, strict=True))


def sorted_tokens(layer: Layer, tokens: int, block: int) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Tokens sorted by expert and padded, the expert of each block, and how many rows count.

    The routing is drawn evenly, from a fixed seed.
    """
    lots = np.random.default_rng(tokens)
    chosen = np.stack([lots.choice(layer.experts, layer.top_k, replace=False) for _ in range(tokens)])
    flat = chosen.reshape(-1)
    most = flat.size + (layer.experts + 1) * (block - 1)
    if tokens < block:
        most = min(most, flat.size * block)
    rows, experts = [], []
    for expert in range(layer.experts):
        own = np.flatnonzero(flat == expert)
        padded = -(-own.size // block) * block
        rows.append(np.pad(own, (0, padded - own.size), constant_values=flat.size))
        experts += [expert] * (padded // block)
    count = sum(r.size for r in rows)
    ids = np.full(max(most, count), flat.size, np.int32)
    ids[:count] = np.concatenate(rows)
    of_block = np.zeros(-(-ids.size // block), np.int32)
    of_block[: len(experts)] = experts
    return ids, of_block, count


def moe_job(source: str, layer: Layer, tokens: int, block: int, values: dict[str, list[int]]) -> Job:
    """The job of one batch size and block height; `values` are those of the other parameters."""
    ids, experts, count = sorted_tokens(layer, tokens, block)
    routed = tokens * layer.top_k
    numbers = {
        "N": layer.rows,
        "K": layer.hidden,
        "EM": ids.size,
        "num_valid_tokens": routed,
        "stride_am": layer.hidden,
        "stride_ak": 1,
        "stride_be": layer.rows * layer.hidden,
        "stride_bk": 1,
        "stride_bn": layer.hidden,
        "stride_cm": layer.rows,
        "stride_cn": 1,
    } | dict.fromkeys(_ZERO, 0)
    order = [
        "N",
        "K",
        "EM",
        "num_valid_tokens",
        "stride_am",
        "stride_ak",
        "stride_be",
        "stride_bk",
        "stride_bn",
    ]
    order += ["stride_bias_e", "stride_bias_n", "stride_cm", "stride_cn", *_ZERO[2:]]
    whole = {"dtype": "int32", "role": "input"}
    arguments: list[dict[str, Any]] = [
        {"name": "a_ptr", "dtype": "float16", "role": "input", "shape": ["M", layer.hidden]},
        {
            "name": "b_ptr",
            "dtype": "float16",
            "role": "input",
            "shape": [layer.experts, layer.rows, layer.hidden],
        },
        {"name": "c_ptr", "dtype": "float16", "role": "output", "shape": [routed, layer.rows]},
        {"name": "topk_weights_ptr", "dtype": "float32", "role": "input", "shape": [routed]},
        {"name": "sorted_token_ids_ptr", **whole, "shape": [ids.size], "draw": _file(ids)},
        {"name": "expert_ids_ptr", **whole, "shape": [experts.size], "draw": _file(experts)},
        {
            "name": "num_tokens_post_padded_ptr",
            **whole,
            "shape": [1],
            "draw": {"distribution": "constant", "low": count},
        },
        *({"name": n, "dtype": "int32", "role": "scalar", "value": numbers[n]} for n in order),
    ]
    constexprs: dict[str, Any] = dict.fromkeys(_NULL) | dict.fromkeys(_OFF, False)
    constexprs |= {"group_n": 0, "group_k": 0, "top_k": layer.top_k, "ROUTER_TOPK": 1, "BLOCK_SIZE_M": block}
    constexprs |= {"compute_type": "tl.float16", "even_Ks": f"{layer.hidden} % BLOCK_SIZE_K == 0"}
    blocks = f"ceil_div({ids.size}, {block}) * ceil_div({layer.rows}, BLOCK_SIZE_N)"
    return Job.model_validate(
        {
            "name": f"{layer.name}-{tokens}-{block}",
            "kernel": {
                "backend": "triton",
                "source": source,
                "entry": "fused_moe_kernel",
                "arguments": arguments,
                "constexprs": constexprs,
                "launch": {"grid": [blocks]},
            },
            "parameters": [{"name": n, "values": v} for n, v in values.items()],
            "workloads": [{"dimensions": {"M": tokens}}],
            "rewrite": {"enabled": False},
        }
    )


def _file(values: NDArray[np.int32]) -> dict[str, str]:
    written = io.BytesIO()
    np.save(written, values)
    return {"distribution": "file", "data": base64.b64encode(written.getvalue()).decode()}
