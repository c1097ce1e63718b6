import triton
import triton.language as tl


@triton.jit
def kernel(x, sums, tops, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < cols
        total += tl.load(x + row * cols + columns, mask=inside, other=0.0)
        largest = tl.maximum(largest, tl.load(x + row * cols + columns, mask=inside, other=-float("inf")))
    tl.store(sums + row, tl.sum(total, axis=0))
    tl.store(tops + row, tl.max(largest, axis=0))
