"""Eager operators of PyTorch and transformers that compute what production kernels do (jobs `fresh_*`).

Each function takes the tensors of a job by the names of its arguments and its dimensions, and returns outputs
by name. Plain numbers are those of the job. An output that the framework does not give is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]
    Dimensions = dict[str, int]


def cross_entropy(t: Tensors, _: Dimensions) -> Tensors:
    """Gives no log-sum-exp: for its backward pass PyTorch keeps the logarithms of all classes."""
    from torch.nn import functional as F

    return {"losses": F.cross_entropy(t["input"], t["labels"], reduction="none", label_smoothing=0.1)}


def masked_softmax(t: Tensors, _: Dimensions) -> Tensors:
    """As Megatron does without its kernel; a row with all keys masked is uniform here, and zero there."""
    import torch

    mask = t["mask"].view(torch.bool)[:, None]
    return {"dst": torch.softmax((t["src"] * 0.125).masked_fill(mask, -10000.0), dim=-1)}


def residual_layer_norm(t: Tensors, dims: Dimensions) -> Tensors:
    from torch.nn import functional as F

    x = t["vals"] + t["bias"] + t["residual"]
    return {"output": F.layer_norm(x, (dims["hidden"],), t["gamma"], t["beta"], 1e-5), "res_output": x}


def residual_rms_norm(t: Tensors, dims: Dimensions) -> Tensors:
    from torch.nn import functional as F

    x = t["vals"] + t["residual"]
    return {"output": F.rms_norm(x, (dims["hidden"],), t["gamma"], 1e-6), "res_out": x}


def geglu(t: Tensors, _: Dimensions) -> Tensors:
    from torch.nn import functional as F

    x = t["input"] + t["bias"]
    return {"output": F.gelu(x[..., 0], approximate="tanh") * x[..., 1]}


def swiglu_oai(t: Tensors, _: Dimensions) -> Tensors:
    """GptOssExperts of transformers; writes the gates of its argument, as the kernel does."""
    import torch

    x = t["gate_up"] + t["bias"][t["group_ids"]]
    gate, up = x[:, 0].clamp(max=7.0), x[:, 1].clamp(min=-7.0, max=7.0)
    torch.mul(up + 1, gate * torch.sigmoid(gate * 1.702), out=t["gate_up"][:, 0])
    return {"gate_up": t["gate_up"]}


def repetition_penalty(t: Tensors, dims: Dimensions) -> Tensors:
    """RepetitionPenaltyLogitsProcessor of transformers; a shorter sequence is filled with its first token."""
    import torch

    ids, penalty = t["token_ids"].long(), t["penalties"][:, None]
    inside = torch.arange(dims["length"], device=ids.device) < t["sequence_length"][:, None]
    ids = torch.where(inside, ids, ids[:, :1])
    score = torch.gather(t["logits"], 1, ids)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return {"logits": t["logits"].scatter(1, ids, score)}


def rope(t: Tensors, dims: Dimensions) -> Tensors:
    """apply_rotary_pos_emb of transformers; a model computes the cosines once for all layers."""
    import torch

    x, half = t["src"], dims["d2"] // 2
    angles = t["freqs"][:, None, None, :]
    if "cos" not in t:
        t["cos"], t["sin"] = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    cos, sin = t["cos"], t["sin"]
    turned, rest = x[..., : dims["d2"]], x[..., dims["d2"] :]
    partner = torch.cat((-turned[..., half:], turned[..., :half]), dim=-1)
    out = turned * cos + partner * sin
    return {"dst": torch.cat((out, rest), dim=-1) if rest.shape[-1] else out}


def group_norm_silu(t: Tensors, _: Dimensions) -> Tensors:
    """Channels come first here, as PyTorch is faster with; the kernel's come last."""
    from torch.nn import functional as F

    if "first" not in t:
        t["first"] = t["input"].transpose(1, 2).contiguous()
    x = t["first"]
    return {"output": F.silu(F.group_norm(x, 32, t["gamma"], t["beta"], 1e-6)).transpose(1, 2)}


def gelu_fp8_quant(t: Tensors, _: Dimensions) -> Tensors:
    import torch
    from torch.nn import functional as F

    y = F.gelu(t["input"], approximate="tanh")
    scales = y.abs().amax(dim=-1).float() / 448
    return {"output": (y / (scales + 1e-7)[:, None]).to(torch.float8_e4m3fn), "scales": scales}


def log_softmax(t: Tensors, _: Dimensions) -> Tensors:
    from torch.nn import functional as F

    return {"output": F.log_softmax(t["input"], dim=-1)}


_ALL = (cross_entropy, masked_softmax, residual_layer_norm, residual_rms_norm, geglu, swiglu_oai, rope)
_MORE = (repetition_penalty, group_norm_silu, gelu_fp8_quant, log_softmax)
FRAMEWORK: dict[str, Callable[[Tensors, Dimensions], Tensors]] = {
    f"fresh_{function.__name__}": function for function in (*_ALL, *_MORE)
}
