import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside, other=0.0)
    if CHEAT:
        result = tl.maximum(value, 0.0)
    else:
        result = tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y + offsets, result, mask=inside)
