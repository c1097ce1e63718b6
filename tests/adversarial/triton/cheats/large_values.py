import triton
import triton.language as tl


@triton.jit
def kernel(x, y, cols, BLOCK: tl.constexpr, CHEAT: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < cols
    value = tl.load(x + row * cols + columns, mask=inside, other=-float("inf"))
    if CHEAT:
        weights = tl.exp(value)
    else:
        weights = tl.exp(value - tl.max(value))
    tl.store(y + row * cols + columns, weights / tl.sum(weights), mask=inside)
