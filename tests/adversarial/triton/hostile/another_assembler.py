# refused: No such file
# A variable of Triton names another assembler, a script in its own folder.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os

    with open("ptxas", "w") as script:
        script.write("#!/bin/sh\ntouch @PROBE@/ptxas\ncat @SECRET@\necho release 12.8, V12.8\nexit 0\n")
    os.chmod("ptxas", 0o755)
    os.environ["TRITON_PTXAS_PATH"] = os.path.abspath("ptxas")
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
