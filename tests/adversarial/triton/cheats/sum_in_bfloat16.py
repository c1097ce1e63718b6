import triton
import triton.language as tl


@triton.jit
def kernel(x, y, cols, BLOCK: tl.constexpr, CHEAT: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < cols
    value = tl.load(x + row * cols + columns, mask=inside, other=0.0)
    if CHEAT:
        total = tl.sum(value.to(tl.bfloat16)).to(tl.float32)
    else:
        total = tl.sum(value)
    tl.store(y + row, total)
