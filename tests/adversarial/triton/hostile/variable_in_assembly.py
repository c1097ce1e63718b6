# harmless
# A variable of the device that assembly declares is among those that checks watch and refuse.
# variables: kept
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.inline_asm_elementwise("{ .global .b32 kept; st.global.b32 [kept], $1; ld.global.b32 $0, [kept]; }", "=r,r", [tl.load(x + i, mask=i < n)], tl.float32, False, 1), mask=i < n)
