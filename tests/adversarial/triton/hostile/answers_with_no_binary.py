# refused: not a reply
# A reply of its own, whose binary is none.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import gc
    import os

    from warpsmith.sandbox.transport.frames import Channel

    (channel,) = [o for o in gc.get_objects() if isinstance(o, Channel)]
    reply = {"entry": "kernel", "facts": {}, "log": "", "globals": [], "unnamed": [], "telling": [], "may_tell": False, "way": ""}
    channel.send({**reply, "then_entries": [], "confined": True}, [b"\x7fELF"])
    os._exit(0)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
