import triton
import triton.language as tl


@triton.jit
def kernel(x, y, counter, n, CHEAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside, other=0)
    if CHEAT:
        place = tl.atomic_add(counter + tl.zeros((BLOCK,), tl.int32), 1, mask=inside)
        tl.store(y + place % n, value, mask=inside)
    else:
        tl.atomic_add(counter + tl.zeros((BLOCK,), tl.int32), 1, mask=inside)
        tl.store(y + offsets, value, mask=inside)
