"""Checks of kernels against what CUDA, HIP and OpenCL cannot pass or launch."""

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.kernels.kernel import Kernel


def cuda_problem(kernel: Kernel) -> str:
    """The first argument that neither CUDA nor HIP can take, with its field; empty without one."""
    for n, argument in enumerate(kernel.arguments):
        if argument.role is Role.LOCAL:
            return (
                f"arguments.{n}.role: {kernel.backend.value} kernels have no local arguments; declare "
                "extern __shared__ memory in the kernel and use launch.shared_bytes"
            )
        if argument.image is not None:
            return f"arguments.{n}.image: {argument.name}: textures cannot be posted; use a buffer"
    return ""


def opencl_problem(kernel: Kernel) -> str:
    """The first launch property or argument that OpenCL lacks, with its field; empty without one."""
    if kernel.launch.joins_blocks:
        field = "cooperative" if kernel.launch.cooperative else "cluster"
        return f"launch.{field}: OpenCL's groups cannot wait for each other; leave it out"
    found = (_opencl_argument(place, argument) for place, argument in kernel.placed())
    return next(filter(None, found), "")


def _opencl_argument(place: str, argument: Argument) -> str:
    if argument.role is Role.SYMBOL:
        return (
            f"{place}.role: OpenCL cannot fill a variable of the program; give {argument.name} an "
            f"initialiser in kernel.source, or make it an argument (`__constant T* {argument.name}`) "
            "with role input"
        )
    inside = [f for f, _ in argument.targets() if f.startswith("fields")]
    if argument.role is Role.POINTERS or inside:
        field = f"{place}.{inside[0]}" if inside else f"{place}.role"
        return f"{field}: OpenCL passes a buffer only as an argument, never by its address"
    if argument.role is Role.POINTER and argument.offset.text != "0":
        return f"{place}.offset: an OpenCL argument is a buffer from its first element on"
    return ""
