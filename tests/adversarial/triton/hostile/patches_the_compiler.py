# refused: forged
# The compiler is another one from here on, in this process only.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import triton as here
    import triton.compiler.compiler as compiler


    def forged(*_, **__):
        raise RuntimeError("forged")


    compiler.CompiledKernel = forged
    here.compile = forged
    here.language.load = forged
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
