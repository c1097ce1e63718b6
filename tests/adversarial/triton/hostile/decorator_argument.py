# harmless
# Of the decorator's arguments, literals stay.
import triton
import triton.language as tl


@triton.jit(debug=__import__("os").mkdir("@PROBE@/argument"))
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
