# harmless
# What is written to the cache is gone with the process.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os

    for folder in (os.environ["TRITON_CACHE_DIR"], os.environ["TRITON_HOME"]):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "poison"), "w") as file:
            file.write("poison")
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
