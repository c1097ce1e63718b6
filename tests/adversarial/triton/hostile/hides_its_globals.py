# harmless
# The reply says that the binary has no variables; the binary says otherwise.
# variables: kept
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import warpsmith.extensions.triton.backend.compile as compiler

    own = compiler.read_cubin


    class Nothing:
        def __init__(self, binary):
            found = own(binary)
            self.entries, self.parameters, self.writable_globals = found.entries, found.parameters, ()


    compiler.read_cubin = Nothing
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.inline_asm_elementwise("{ .global .b32 kept; st.global.b32 [kept], $1; ld.global.b32 $0, [kept]; }", "=r,r", [tl.load(x + i, mask=i < n)], tl.float32, False, 1), mask=i < n)
