"""HIP C++ as a language of kernels."""

from warpsmith.domain.language import Language, imported
from warpsmith.domain.own_languages import CUDA_ENVIRONMENT, CUDA_NAMES

OFFSET = "WARPSMITH_OFFSET"
"""Macro of HIP's compilers here: the byte at which a type's member begins."""

HIP = Language(
    name="hip",
    devices=("hip", "cuda"),
    module="warpsmith.extensions.hip.backend",
    endings=(".hip",),
    has_cuda_words=True,
    kernel_word="__global__",
    kernel_head='extern "C" __global__ void',
    global_index="blockIdx.x * blockDim.x + threadIdx.x",
    axis=r"\b(?:(?:blockIdx|threadIdx)\s*\.\s*|hip(?:Block|Thread)Idx_)([yz])\b",
    grid_axis=r"\b(?:blockIdx\s*\.\s*|hipBlockIdx_)([yz])\b",
    offset_of=OFFSET + "({0}, {1})",
    widest_warp=64,
    options=(
        r"-ffast-math",
        r"-ffp-contract=(fast|on|off)",
        r"-fno-(fast-math|math-errno|signed-zeros)",
        r"--?std=c\+\+(11|14|17|20)",
        r"-O[123]",
        r"-D[A-Za-z_]\w{0,63}(=[A-Za-z0-9_.+-]{0,64})?",
    ),
    bindings=("cuda.bindings.nvrtc", "hip"),
    libraries=("pycuda", "hip"),
    remedy="an AMD GPU with ROCm, and {advice}",
    environment_names=(
        *CUDA_NAMES,
        "ROCM_PATH",
        "ROCM_HOME",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
    ),
    environment=CUDA_ENVIRONMENT,
    probe_rank=1,
    toolkit_folders=imported("warpsmith.extensions.hip.rocm_paths", "rocm_roots"),
    compiler_version=imported("warpsmith.extensions.hip.compiler_version", "compiler_version"),
    problem=imported("warpsmith.domain.kernels.dialect_checks", "cuda_problem"),
)
