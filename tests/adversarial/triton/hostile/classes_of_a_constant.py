# refused: SIZE is no constant
# From a tuple to all classes of the process.
import triton
import triton.language as tl

SIZE = tl.constexpr(().__class__.__base__.__subclasses__())


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
