# refused: ended by signal 11
# A fault ends the fork, not the child.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import ctypes

    return ctypes.string_at(8)[0]


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
