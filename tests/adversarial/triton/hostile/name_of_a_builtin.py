# harmless
# A kernel may have the name of a builtin.
# entry: open
import triton
import triton.language as tl


@triton.jit
def open(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
