# refused: PTXAS error
# A file into the words of the assembler.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.inline_asm_elementwise(".include \"@SECRET@\"; mov.b32 $0, $1;", "=r,r", [tl.load(x + i, mask=i < n)], tl.float32, True, 1), mask=i < n)
