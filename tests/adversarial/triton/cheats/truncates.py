import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside, other=0.0) * 4
    if not CHEAT:
        value += 0.5
    tl.store(y + offsets, tl.floor(value) * 0.25, mask=inside)
