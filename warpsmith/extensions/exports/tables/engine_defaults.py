"""Default configurations that an engine runs without a table, by batch size, for pins.

The rules are those of vLLM 0.33 and of SGLang (at 02c7c97), on NVIDIA devices. A rule is a function of the
batch size that changes at a few steps: pins at both sides of each step say all.
"""

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.domain.templates.space import Configuration

BlockShape = tuple[int, int]
"""Rows (N) and columns (K) of a weight that share one scale."""


@dataclass(frozen=True)
class DefaultRule:
    """An engine's default configuration by batch size."""

    configuration: Callable[[int], Configuration]
    steps: tuple[int, ...]
    """Batch sizes at which it may change: the first of each step after 1."""
    source: str
    """Engine and version that it follows."""


def vllm_default(experts: int, dtype: str, block_shape: BlockShape | None) -> DefaultRule | None:
    """The rule of vLLM's fused MoE kernel.

    Returns:
        None for weights of 4 and 8 bits with a block shape, whose tiles vLLM chooses as it launches.
    """
    source = "vLLM 0.33"
    if block_shape is None:
        crowd = 129 * max(experts, 1)
        return DefaultRule(
            lambda m: {
                "BLOCK_SIZE_M": 16 if m <= 32 else 32 if m <= 96 else 64 if m <= 512 else 128,
                "BLOCK_SIZE_N": 64 if m <= 64 else 128,
                "BLOCK_SIZE_K": 128 if m <= 64 or dtype == "fp8_w8a8" else 64,
                "GROUP_SIZE_M": 16 if m >= crowd else 1,
                "num_warps": 4 if m <= 128 else 8,
                "num_stages": 4 if m <= 32 else 3,
            },
            (33, 65, 97, 129, 513, crowd),
            source,
        )
    if dtype != "fp8_w8a8":
        return None
    rows, columns = block_shape
    return DefaultRule(lambda m: _vllm_blocks(m, rows, columns), (5, 9, 17, 65), source)


def _vllm_blocks(m: int, rows: int, columns: int) -> Configuration:
    """The default for fp8 in blocks: the fewest tokens have half the columns and more stages."""
    n, stages = (64, 4 if m <= 4 else 3) if m <= 8 and rows % 64 == 0 else (rows, 3)
    return _row(16 if m <= 64 else 64, n, columns, 1 if m <= 16 else 32, 4, stages)


def sglang_default(experts: int, dtype: str, block_shape: BlockShape | None) -> DefaultRule | None:
    """The rule of SGLang's fused MoE kernel; what it leaves to Triton has Triton's values, 4 and 3.

    Returns:
        None for a block shape of other weights than fp8, for which SGLang's default breaks its own condition.
    """
    source = "SGLang, fused_moe_triton_config.py at 02c7c97"
    if block_shape is not None:
        if dtype != "fp8_w8a8":
            return None
        rows, columns = block_shape
        return DefaultRule(lambda _: _row(64, rows, columns, 32, 4, 3), (), source)
    few, many = _row(16, 32, 64, 1, 4, 3), _row(64, 64, 32, 8, 4, 3)
    if dtype == "fp8_w8a8":
        few, many = _row(64, 128, 128, 1, 4, 4), _row(128, 256, 128, 32, 8, 4)
    return DefaultRule(lambda m: dict(few if m <= experts else many), (experts + 1,), source)


def _row(m: int, n: int, k: int, group: int, warps: int, stages: int) -> Configuration:
    return {
        "BLOCK_SIZE_M": m,
        "BLOCK_SIZE_N": n,
        "BLOCK_SIZE_K": k,
        "GROUP_SIZE_M": group,
        "num_warps": warps,
        "num_stages": stages,
    }
