# refused: Unsupported function referenced
# sys.modules by way of what Triton imported.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    triton.runtime.build.os.sys.modules.get("posix").mkdir("@PROBE@/modules")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
