# refused: is a class
# A class whose methods the compiler would call.
import triton
import triton.language as tl


class Evil(tl.constexpr):
    def __init__(self):
        super().__init__(open("@PROBE@/class", "w"))


SIZE: tl.constexpr = 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    size: tl.constexpr = Evil()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
