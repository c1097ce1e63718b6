# refused: not a reply
# The binary of another class of launches under this key.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import warpsmith.extensions.triton.backend.compile as compiler

    own = compiler.Variant
    compiler.Variant = lambda **fields: own(**{**fields, "passes": (0, 0, 0, 0, 0, 1)})
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
