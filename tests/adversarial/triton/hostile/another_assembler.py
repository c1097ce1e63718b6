# refused: No such file
# A variable of Triton names another assembler, a script in its own folder.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os

    with open(os.open("ptxas", os.O_CREAT | os.O_WRONLY, 0o755), "w") as script:
        script.write("#!/bin/sh\ntouch @PROBE@/ptxas\ncat @SECRET@\necho release 12.8, V12.8\nexit 0\n")
    # Which of them is read depends on the version of Triton and on the device.
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        os.environ[name] = os.path.abspath("ptxas")
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
