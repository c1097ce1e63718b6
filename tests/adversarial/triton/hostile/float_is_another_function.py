# refused: float stands for
# A call that passes for a constant, once its name has another meaning.
import triton
import triton.language as tl

float = triton.runtime.build.os.system
SIZE = float("touch @PROBE@/float")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
