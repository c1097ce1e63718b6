import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, stride, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    if CHEAT:
        value = tl.load(x + offsets, mask=inside, other=0.0)
    else:
        value = tl.load(x + offsets * stride, mask=inside, other=0.0)
    tl.store(y + offsets, value / (1 + tl.exp(-value)), mask=inside)
