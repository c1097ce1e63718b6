"""A fused MoE kernel of our own, with the names that engines' kernels have for their parameters."""

import triton
import triton.language as tl


@triton.jit
def scaled(accumulator, a_scale, b_scale):
    return accumulator * a_scale * b_scale


@triton.jit
def fused_moe_kernel(  # noqa: PLR0913
    a_ptr,
    b_ptr,
    c_ptr,
    b_bias_ptr,
    a_scale_ptr,
    b_scale_ptr,
    topk_weights_ptr,
    sorted_token_ids_ptr,
    expert_ids_ptr,
    num_tokens_post_padded_ptr,
    N,
    K,
    EM,
    num_valid_tokens,
    stride_am,
    stride_ak,
    stride_be,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    stride_asm,
    stride_ask,
    stride_bse,
    stride_bsk,
    stride_bsn,
    group_n: tl.constexpr,
    group_k: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    MUL_ROUTED_WEIGHT: tl.constexpr,
    top_k: tl.constexpr,
    compute_type: tl.constexpr,
    use_fp8_w8a8: tl.constexpr,
    use_int8_w8a8: tl.constexpr,
    per_channel_quant: tl.constexpr,
    FUTURE: tl.constexpr = False,
):
    wide = tl.cdiv(N, BLOCK_SIZE_N)
    in_group = GROUP_SIZE_M * wide
    first = tl.program_id(0) // in_group * GROUP_SIZE_M
    high = min(tl.cdiv(EM, BLOCK_SIZE_M) - first, GROUP_SIZE_M)
    row_block = first + tl.program_id(0) % in_group % high
    column_block = tl.program_id(0) % in_group // high
    if row_block * BLOCK_SIZE_M >= tl.load(num_tokens_post_padded_ptr):
        return
    rows = tl.load(sorted_token_ids_ptr + row_block * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)).to(tl.int64)
    counts = rows < num_valid_tokens
    expert = tl.load(expert_ids_ptr + row_block).to(tl.int64)
    columns = column_block * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    inside = columns % N
    deep = tl.arange(0, BLOCK_SIZE_K)
    a = a_ptr + rows[:, None] // top_k * stride_am + deep[None, :] * stride_ak
    b = b_ptr + expert * stride_be + deep[:, None] * stride_bk + inside[None, :] * stride_bn
    a_scales = a_scale_ptr
    b_scales = b_scale_ptr
    if (use_fp8_w8a8 or use_int8_w8a8) and (group_k > 0 or per_channel_quant):
        a_scales += rows // top_k * stride_asm
        b_scales += expert * stride_bse + (inside // group_n if group_k > 0 else inside) * stride_bsn
    total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_SIZE_K):
        left = tl.load(a, mask=counts[:, None] & (deep[None, :] < K - k), other=0.0)
        right = tl.load(b, mask=deep[:, None] < K - k, other=0.0)
        if group_k > 0:
            own = tl.load(a_scales + k // group_k * stride_ask, mask=counts, other=0.0)
            others = tl.load(b_scales + k // group_k * stride_bsk)
            total += scaled(tl.dot(left, right), own[:, None], others[None, :])
        else:
            total += tl.dot(left, right)
        a += BLOCK_SIZE_K * stride_ak
        b += BLOCK_SIZE_K * stride_bk
    if (use_fp8_w8a8 or use_int8_w8a8) and group_k == 0:
        if per_channel_quant:
            own = tl.load(a_scales, mask=counts, other=0.0)
            total = scaled(total, own[:, None], tl.load(b_scales)[None, :])
        else:
            total = scaled(total, tl.load(a_scales), tl.load(b_scales + expert))
    if MUL_ROUTED_WEIGHT:
        total *= tl.load(topk_weights_ptr + rows, mask=counts, other=0.0)[:, None]
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c, total.to(compute_type), mask=counts[:, None] & (columns[None, :] < N))
