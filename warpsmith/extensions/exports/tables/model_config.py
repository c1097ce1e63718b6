"""The fused MoE layer of a model, from its `config.json` as the Hugging Face hub has it. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.engine_defaults import BlockShape
from warpsmith.extensions.exports.tables.engine_log import LogPlace, MissingTable
from warpsmith.extensions.exports.tables.engines import MoeShape, vllm_device

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
    """Experts of a token on one device, which has its share of them where experts are shared out."""
    count: int = 0
    """Such layers of the model, with those of its first ones that have no experts; 0: not known."""


def model_config(text: str) -> Mapping[str, Any] | None:
    """A model's configuration; None if the text is none, such as a log."""
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.keys() & {"model_type", "architectures"} else None


def model_tables(layer: MoeLayer, device: str) -> list[MissingTable]:
    """The tables for which vLLM and SGLang look; a device without a name is `*` in the files' names."""
    shape = layer.shape
    facts = {"E": str(shape.experts), "N": str(shape.size), "device_name": device, "dtype": shape.dtype}
    facts["block_shape"] = "[{}, {}]".format(*shape.block_shape) if shape.block_shape else ""
    facts["per_channel_quant"] = "True" if shape.per_channel else ""
    made = []
    for engine, name in (("vLLM", vllm_device(device)), ("SGLang", device.replace(" ", "_"))):
        kept = ((key, value) for key, value in (facts | {"device_name": name}).items() if value)
        place = LogPlace(engine, "fused MoE", tuple(kept))
        file = shape.file(engine, name or "*")
        row = MissingTable(place, file, runs="its own table, or the default")
        row.hidden, row.chosen, row.layers = layer.hidden, layer.chosen, layer.count
        made.append(row)
    return made


def logged_layer(place: LogPlace, hidden: int, chosen: int) -> MoeLayer:
    """The layer of a fused MoE table that a log names, with what no log says."""
    facts = dict(place.facts)
    shape, channels = _two(facts.get("block_shape")), "per_channel_quant" in facts
    made = MoeShape(int(facts["E"]), int(facts["N"]), facts.get("dtype", ""), shape, channels)
    return MoeLayer(made, hidden, chosen)


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
    outer = [_part(config, name) for name in _INSIDE]
    parts = [config, *outer, *(_part(part, name) for part in outer for name in _INSIDE)]
    experts, size = _first(parts, _EXPERTS), _first(parts, _SIZES)
    if experts < 2:
        raise InvalidInput(where, "the model has no experts, so no engine asks for such a table for it")
    if tp % ep or experts % ep:
        raise InvalidInput("--ep", f"{ep} does not divide both --tp {tp} and the {experts} experts; mend it")
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
            "--tp", f"{slices} slices do not divide the intermediate size {size}; give another"
        )
    dtype, shape, per_channel = _weights(parts, where)
    if shape and size // slices % shape[0]:
        words = f"a slice of {size // slices} is no multiple of the {shape[0]} rows that share a scale"
        raise InvalidInput("--tp", f"{words}; give a smaller --tp, or a larger --ep")
    made = MoeShape(experts // ep, size // slices, dtype, shape, per_channel)
    count = _first(parts, ("num_hidden_layers", "num_layers", "n_layers"))
    chosen = -(-found["number of experts of a token"] // ep)
    return MoeLayer(made, found["hidden size"], chosen, count)


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
    made: _Part = next((found for part in parts if (found := _part(part, "quantization_config"))), {})
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
