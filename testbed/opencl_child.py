"""Runs the OpenCL launches that `cases.json` of a folder lists. A process of its own: a kernel may crash."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def main(folder: Path) -> None:
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    import pyopencl as cl

    from warpsmith.backends.opencl.pocl_cpu_name import name_unknown_cpu

    device = cl.get_platforms()[0].get_devices()[0]
    name_unknown_cpu(device)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    programs: dict[str, Any] = {}
    for n, case in enumerate(json.loads((folder / "cases.json").read_text())):
        try:
            if case["source"] not in programs:
                programs[case["source"]] = cl.Program(context, case["source"]).build(options=case["options"])
            launch(cl, context, queue, programs[case["source"]], case, folder, n)
        except cl.Error as exc:
            (folder / f"{n}-error.txt").write_text(str(exc))


def launch(cl: Any, context: Any, queue: Any, program: Any, case: Any, folder: Path, n: int) -> None:
    kernel = cl.Kernel(program, case["entry"])
    buffers, values = {}, []
    with np.load(folder / f"{n}-in.npz") as inputs:
        for name in case["arguments"]:
            value = inputs[name]
            if value.ndim:
                flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                buffers[name] = (cl.Buffer(context, flags, hostbuf=value), np.empty_like(value))
                values.append(buffers[name][0])
            else:
                values.append(value[()])
    grid, block = ([*case[part], 1, 1][:3] for part in ("grid", "block"))
    size = [g * b for g, b in zip(grid, block, strict=True)]
    kernel(queue, size, block, *values)
    for buffer, host in buffers.values():
        cl.enqueue_copy(queue, host, buffer)
    queue.finish()
    np.savez(folder / f"{n}-out.npz", **{name: host for name, (_, host) in buffers.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
