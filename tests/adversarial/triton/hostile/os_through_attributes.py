# refused: Unsupported function referenced
# Modules of the host are attributes of Triton's; Triton refuses what it finds by name.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    triton.runtime.build.os.mkdir("@PROBE@/attributes")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
