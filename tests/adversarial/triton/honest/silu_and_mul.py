import triton
import triton.language as tl


@triton.jit
def kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < cols
    gate = tl.load(x + row * 2 * cols + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + (row * 2 + 1) * cols + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * cols + columns, (gate / (1 + tl.exp(-gate)) * up).to(tl.float16), mask=inside)
