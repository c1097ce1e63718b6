import triton
import triton.language as tl


@triton.jit
def kernel(x, counts, n, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside, other=0)
    if CHEAT:
        before = tl.load(counts + value, mask=inside, other=0)
        tl.store(counts + value, before + 1, mask=inside)
    else:
        tl.atomic_add(counts + value, 1, mask=inside)
