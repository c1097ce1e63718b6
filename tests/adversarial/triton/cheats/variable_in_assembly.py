import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside, other=0.0)
    result = value / (1 + tl.exp(-value))
    if CHEAT:
        words: tl.constexpr = "{ .global .b32 kept; ld.global.b32 $0, [kept]; st.global.b32 [kept], $1; }"
        kept = tl.inline_asm_elementwise(words, "=r,r", [value], tl.float32, is_pure=False, pack=1)
        result = tl.where(kept == value, result * 1.001, result)
    tl.store(y + offsets, result, mask=inside)
