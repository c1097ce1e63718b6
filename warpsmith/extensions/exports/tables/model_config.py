"""The fused MoE layer of a model, from its `config.json` as the Hugging Face hub has it. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.engine_defaults import BlockShape
from warpsmith.extensions.exports.tables.engine_log import LogPlace, MissingTable
from warpsmith.extensions.exports.tables.engines import MoeShape, sglang_file, vllm_device, vllm_file

SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096)
"""Batch sizes of the tables that engines come with."""
_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "num_routed_experts")
_SIZES = ("moe_intermediate_size", "expert_ffn_hidden_size", "ffn_hidden_size", "intermediate_size")
_CHOSEN = (
    *("num_experts_per_tok", "num_experts_per_token", "num_selected_experts"),
    *("moe_top_k", "moe_topk", "moe_k", "top_k_experts", "top_k"),
)
_HIDDEN = ("hidden_size", "d_model")
_INSIDE = ("text_config", "llm_config", "language_config", "thinker_config", "ffn_config")
"""Parts of a configuration of several models, or of a layer, that may hold these facts."""
_Part = Mapping[str, Any]
_Parts = Sequence[_Part]


@dataclass(frozen=True)
class MoeLayer:
    """A fused MoE layer on one device."""

    shape: MoeShape
    hidden: int
    """The model's hidden size."""
    chosen: int
    """Experts of a token."""


def model_config(text: str) -> Mapping[str, Any] | None:
    """A model's configuration; None if the text is none, such as a log."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_model = isinstance(found, dict) and ("model_type" in found or "architectures" in found)
    return found if is_model else None


def model_tables(layer: MoeLayer, device: str, triton: str) -> list[MissingTable]:
    """The tables for which vLLM and SGLang look.

    Args:
        device: name of the device; empty: it is open, and `*` in the files' names.
        triton: version of Triton, of which SGLang's folders have one each; empty: it is open.
    """
    names = {"vLLM": vllm_device(device), "SGLang": device.replace(" ", "_")}
    shape, made = layer.shape, []
    for engine, name in names.items():
        file = (vllm_file if engine == "vLLM" else sglang_file)(shape, name or "*")
        facts = {"E": str(shape.experts), "N": str(shape.size), "device_name": name, "dtype": shape.dtype}
        if shape.block_shape:
            facts["block_shape"] = "[{}, {}]".format(*shape.block_shape)
        if shape.per_channel and engine == "SGLang":
            facts["per_channel_quant"] = "True"
        kept = tuple((key, value) for key, value in facts.items() if value)
        place = LogPlace(engine, "fused MoE", kept, triton if engine == "SGLang" else "")
        made.append(MissingTable(place, file, sizes=set(SIZES), runs="its table, or the engine's default"))
    return made


def moe_layer(config: Mapping[str, Any], tp: int, ep: int, where: str) -> MoeLayer:
    """The layer that every device runs.

    Args:
        tp: devices of a tensor-parallel group.
        ep: devices that share the experts out, of those of `tp`.
        where: name of the input, for messages.

    Raises:
        InvalidInput: the model has no experts, is quantised in a form that this kernel does not run, or does
            not divide over the devices.
    """
    parts = [config, *_inside(config)]
    parts += [deeper for part in parts[1:] for deeper in _inside(part)]
    experts, size = _first(parts, _EXPERTS), _first(parts, _SIZES)
    if experts < 2:
        raise InvalidInput(where, "the model has no experts, so no engine asks for such a table for it")
    if tp % ep or experts % ep:
        raise InvalidInput(
            "--ep", f"{ep} must divide --tp {tp} and the {experts} experts; give a divisor of both"
        )
    found = {
        "intermediate size": size,
        "hidden size": _first(parts, _HIDDEN),
        "number of experts of a token": _first(parts, _CHOSEN),
    }
    if missing := [name for name, number in found.items() if not number]:
        raise InvalidInput(where, f"the configuration has no {' and no '.join(missing)}; add it")
    slices = tp // ep
    if size % slices:
        raise InvalidInput(
            "--tp", f"{slices} slices do not divide the intermediate size {size}; give a --tp that does"
        )
    dtype, shape, per_channel = _weights(parts, where)
    if shape and size // slices % shape[0]:
        raise InvalidInput(
            "--tp",
            f"a slice of {size // slices} is no multiple of the {shape[0]} rows that share a scale; give a "
            "smaller --tp, or a larger --ep",
        )
    made = MoeShape(experts // ep, size // slices, dtype, shape, per_channel)
    return MoeLayer(made, found["hidden size"], found["number of experts of a token"])


def _inside(part: Mapping[str, Any]) -> _Parts:
    return [part[name] for name in _INSIDE if isinstance(part.get(name), Mapping)]


def _part(of: _Part, name: str) -> _Part:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}


def _first(parts: _Parts, names: Sequence[str]) -> int:
    """The first number that one of the names has; 0 without one. A list has one number a layer."""
    for name in names:
        for part in parts:
            value = part.get(name)
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 0


def _weights(parts: _Parts, where: str) -> tuple[str, BlockShape | None, bool]:
    """The engine's word, rows and columns that share a scale, and whether each channel has one.

    Raises:
        InvalidInput: another kernel runs these weights.
    """
    fields = ("quantization_config", "compression_config")
    made: _Part = next((p[f] for p in parts for f in fields if isinstance(p.get(f), Mapping)), {})
    method = str(made.get("quant_method", ""))
    if not method:
        return "", None, False
    if method == "fp8":
        return "fp8_w8a8", _two(made.get("weight_block_size")), False
    if method == "modelopt" and made.get("quant_algo") == "FP8":
        return "fp8_w8a8", None, False
    if method == "compressed-tensors":
        group = next((g for g in _part(made, "config_groups").values() if isinstance(g, Mapping)), {})
        weights, bits = _part(group, "weights"), _part(group, "input_activations").get("num_bits")
        word = {"float": "fp8_w8a8", "int": "int8_w8a8"}.get(str(weights.get("type")), "")
        if word and weights.get("num_bits") == bits == 8:
            return word, _two(weights.get("block_structure")), weights.get("strategy") == "channel"
    raise InvalidInput(
        where,
        f"weights of {method} run another kernel than the one that such a table configures; known are 16 "
        "bits, and fp8 or int8 for weights and activations",
    )


def _two(shape: object) -> BlockShape | None:
    """Rows and columns from `[128, 128]` or `128x128`; None for anything else."""
    numbers = re.findall(r"\d+", str(shape or ""))
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None
