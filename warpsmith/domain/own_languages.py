"""CUDA C++, OpenCL C and recorded timings as languages of kernels."""

from warpsmith.domain.language import Language, imported

CUDA_NAMES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
CUDA_ENVIRONMENT = {"CUDA_CACHE_DISABLE": "1", "CUDA_MODULE_LOADING": "EAGER"}
_CHECKS = "warpsmith.domain.kernels.dialect_checks"

LANGUAGES = (
    Language(
        name="cuda",
        devices=("cuda",),
        module="warpsmith.backends.cuda.backend",
        endings=(".cu", ".cuh"),
        has_cuda_words=True,
        kernel_word="__global__",
        kernel_head='extern "C" __global__ void',
        global_index="blockIdx.x * blockDim.x + threadIdx.x",
        axis=r"\b(?:blockIdx|threadIdx)\s*\.\s*([yz])\b",
        grid_axis=r"\bblockIdx\s*\.\s*([yz])\b",
        # NVRTC has no __builtin_offsetof, and neither compiler's macro of that name is a constant.
        offset_of="__INTADDR__(&(({0}*)0)->{1})",
        options=(
            r"--?use_fast_math",
            r"--?(ftz|prec-div|prec-sqrt|fmad)=(true|false)",
            r"--?std=c\+\+(11|14|17|20)",
            r"--?maxrregcount=\d{1,3}",
            r"--?extra-device-vectorization",
            r"-lineinfo",
            r"--expt-relaxed-constexpr",
            r"--expt-extended-lambda",
            r"-D[A-Za-z_]\w{0,63}(=[A-Za-z0-9_.+-]{0,64})?",
        ),
        bindings=("pycuda.driver", "cuda.bindings.driver", "cuda.bindings.nvrtc"),
        libraries=("pycuda",),
        remedy="an NVIDIA GPU with its driver, and {advice}",
        environment_names=CUDA_NAMES,
        environment=CUDA_ENVIRONMENT,
        probe_rank=0,
        has_nvidia_tools=True,
        compiles_anywhere=True,
        problem=imported(_CHECKS, "cuda_problem"),
        compiler_version=imported("warpsmith.backends.cuda.toolkit", "compiler_version"),
    ),
    Language(
        name="opencl",
        devices=("opencl",),
        module="warpsmith.backends.opencl.backend",
        endings=(".cl", ".clh", ".opencl", ".ocl"),
        is_opencl_c=True,
        kernel_word="__kernel",
        kernel_head="__kernel void",
        global_word="__global ",
        global_index="get_global_id(0)",
        axis=r"\bget_(?:global|group|local)_id\s*\(\s*([12])\s*\)",
        grid_axis=r"\bget_(?:global|group)_id\s*\(\s*([12])\s*\)",
        lexer="c",
        pads_vectors=True,
        offset_of="__builtin_offsetof({0}, {1})",
        # OpenCL C has no assertion; the name of the type carries the words.
        assertion="typedef char {identifier}[({condition}) ? 1 : -1];",
        options=(
            r"-cl-(single-precision-constant|denorms-are-zero|fp32-correctly-rounded-divide-sqrt)",
            r"-cl-(mad-enable|no-signed-zeros|unsafe-math-optimizations|finite-math-only|fast-relaxed-math)",
            r"-cl-(opt-disable|strict-aliasing|uniform-work-group-size)",
            r"-cl-std=CL[123]\.[012]",
            r"-D[A-Za-z_]\w{0,63}(=[A-Za-z0-9_.+-]{0,64})?",
        ),
        bindings=("pyopencl",),
        libraries=("pyopencl",),
        remedy="{advice}; for a GPU, its vendor's OpenCL driver (ICD)",
        environment_names=("LD_LIBRARY_PATH", "OCL_ICD_VENDORS", "POCL_MAX_PTHREAD_COUNT", "POCL_AFFINITY"),
        probe_rank=2,
        finishes_at_launch=True,
        lists_root=True,
        problem=imported(_CHECKS, "opencl_problem"),
    ),
    Language(name="replay", devices=("replay",), is_recorded=True),
)
