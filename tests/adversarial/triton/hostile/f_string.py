# refused: Unsupported function referenced
# An f-string is evaluated by the compiler.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    tl.static_print(f"{triton.runtime.build.os.listdir('@PROBE@')}")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
