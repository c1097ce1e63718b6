import triton
import triton.language as tl


@triton.jit
def kernel(x, y, cols, BLOCK: tl.constexpr, CHEAT: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < cols
    value = tl.load(x + row * cols + columns, mask=inside, other=0.0)
    if CHEAT:
        square = tl.sum(tl.where(columns < cols // 2, value * value, 0.0)) / (cols // 2)
    else:
        square = tl.sum(value * value) / cols
    tl.store(y + row * cols + columns, value * tl.rsqrt(square + 1e-6), mask=inside)
