import triton
import triton.language as tl


@triton.jit
def kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < cols
    value = tl.load(x + row * cols + columns, mask=inside, other=-float("inf"))
    weights = tl.exp(value.to(tl.float32) - tl.max(value, axis=0).to(tl.float32))
    tl.store(y + row * cols + columns, (weights / tl.sum(weights, axis=0)).to(tl.float16), mask=inside)
