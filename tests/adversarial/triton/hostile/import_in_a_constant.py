# refused: SIZE is no constant
# A constant that the kernel uses is run.
import triton
import triton.language as tl

SIZE = __import__("os").system("touch @PROBE@/constant")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
