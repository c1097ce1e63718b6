# refused: copy
# A library by its path, which the linker of the compiler would read; Triton's reader fails at the call before it.
import triton
import triton.language as tl


@triton.constexpr_function
def types():
    return {(tl.float32,): ("secret", tl.float32)}


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    ones = tl.full((BLOCK,), 1.0, tl.float32)
    value = tl.core.extern_elementwise("secret", "@SECRET@", [ones], types(), is_pure=True)
    tl.store(y + tl.arange(0, BLOCK), value)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
