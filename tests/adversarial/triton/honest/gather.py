import triton
import triton.language as tl


@triton.jit
def kernel(table, index, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(index + row)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < cols
        tl.store(y + row * cols + columns, tl.load(table + source * cols + columns, mask=inside), mask=inside)
