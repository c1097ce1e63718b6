# refused: several statements
# A call that hides behind a constant.
import triton
import triton.language as tl

SIZE: tl.constexpr = 2; open("@PROBE@/line", "w")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
