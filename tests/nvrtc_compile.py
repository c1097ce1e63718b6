"""Compile CUDA source to a cubin with NVRTC, for tests on machines without a GPU."""

from functools import cache
from importlib.metadata import files
from pathlib import Path


@cache
def include_dir() -> Path:
    """Where the runtime wheel keeps cuda_fp16.h."""
    for file in files("nvidia-cuda-runtime") or ():
        if file.name == "cuda_fp16.h":
            return Path(str(file.locate())).parent
    raise AssertionError("nvidia-cuda-runtime carries no cuda_fp16.h")


def compile_cuda(source: str, entry: str, options: tuple[str, ...] = ()) -> str:
    """Compile for sm_90; returns the compiler's log where it fails, else an empty text."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    nvrtc.nvrtcAddNameExpression(program, entry.encode())
    flags = [b"--gpu-architecture=sm_90", b"--std=c++17", b"-I" + str(include_dir()).encode()]
    flags += [o.encode() for o in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    log = ""
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        buffer = b" " * size
        nvrtc.nvrtcGetProgramLog(program, buffer)
        log = buffer.decode().rstrip("\0") or str(status)
    nvrtc.nvrtcDestroyProgram(program)
    return log
