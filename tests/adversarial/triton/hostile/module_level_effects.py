# harmless
# What the file does when it is imported is left out.
import os
import socket
import triton
import triton.language as tl

open("@PROBE@/module-level", "w").close()
os.system("touch @PROBE@/module-system")
socket.create_connection(("127.0.0.1", @PORT@))
for name in ("a", "b"):
    os.mkdir("@PROBE@/" + name)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
