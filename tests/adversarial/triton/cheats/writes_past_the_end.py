import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside, other=0.0)
    result = value / (1 + tl.exp(-value))
    if CHEAT:
        tl.store(y + offsets, result)
    else:
        tl.store(y + offsets, result, mask=inside)
