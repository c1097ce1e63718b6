"""Triton's Python as a language of kernels; its binaries are CUDA's."""

from warpsmith.domain.kernels.triton_function import LAUNCH_OPTIONS
from warpsmith.domain.language import Language, imported
from warpsmith.extensions.triton.backend.version import triton_version
from warpsmith.extras import advice

_CHECKS = "warpsmith.extensions.triton.kernel_checks"


def _lacking() -> str:
    return "" if triton_version() else f"triton is missing; {advice('triton')}"


TRITON = Language(
    name="triton",
    devices=("cuda",),
    module="warpsmith.extensions.triton.backend.backend",
    endings=(".py",),
    is_c_text=False,
    comment="#",
    lexer="python",
    launch_options=LAUNCH_OPTIONS,
    specialises=True,
    runs_source=True,
    bindings=("triton",),
    libraries=("triton",),
    complete=imported(_CHECKS, "with_triton_launch"),
    complete_in_job=imported(_CHECKS, "with_warps"),
    problem=imported(_CHECKS, "triton_problem"),
    signature_findings=imported("warpsmith.extensions.triton.signature_check", "triton_findings"),
    compile_reply=imported("warpsmith.extensions.triton.compile_reply", "by_its_binary"),
    compiler_version=triton_version,
    lacking=_lacking,
)
