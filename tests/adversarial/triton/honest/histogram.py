import triton
import triton.language as tl


@triton.jit
def kernel(x, counts, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.atomic_add(counts + tl.load(x + offsets, mask=inside, other=0), 1, mask=inside)
