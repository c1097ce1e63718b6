"""Which kernels of other people are tried by `door`."""

from dataclasses import dataclass

from warpsmith.domain.device import Backend


@dataclass(frozen=True)
class Project:
    """Files of a repository at a commit."""

    repository: str
    commit: str
    files: str
    """Regular expression of the paths whose kernels count."""
    is_application: bool = False
    """True for a program or library that people use, as opposed to samples and benchmarks."""
    backend: Backend = Backend.OPENCL
    drawn: int = 0
    """Number of kernels that are drawn by lot; 0: all of them."""
    folders: tuple[str, ...] = ()
    """Folders of the tree that are laid out; empty: all of it."""


def _cuda(
    repository: str, commit: str, drawn: int, files: str = r".*\.cu", folders: tuple[str, ...] = ()
) -> Project:
    return Project(repository, commit, files, backend=Backend.CUDA, drawn=drawn, folders=folders)


_KNOWN = (
    Project(
        "abduld/Parboil",
        "a4c63da",
        r"benchmarks/[\w-]+/src/opencl_(?:base|nvidia)/.*\.cl",
        drawn=35,
        folders=("benchmarks",),
    ),
    Project(
        "sschaetz/nvidia-opencl-examples", "4e919bd", r"OpenCL/src/.*\.cl", drawn=91, folders=("OpenCL",)
    ),
    Project("s1kl3/AMDAPP_samples", "54da6ca", r"cl/.*\.cl", drawn=53, folders=("cl",)),
    Project(
        "opencv/opencv_contrib", "2a5154a", r"modules/.*/src/opencl/.*\.cl", drawn=35, folders=("modules",)
    ),
    Project("pocl/pocl", "5066640", r"examples/.*\.cl", drawn=21, folders=("examples",)),
    Project("bulletphysics/bullet3", "6c888f4", r"src/Bullet3OpenCL/.*\.cl", drawn=21, folders=("src",)),
    Project("CNugteren/CLBlast", "eeff251", r"src/kernels/.*\.opencl", True, drawn=52, folders=("src",)),
    Project("lightvector/KataGo", "6a1fc5d", r"cpp/neuralnet/openclkernels\.cpp", True, folders=("cpp",)),
    Project("leela-zero/leela-zero", "3ee6d20", r"src/kernels/.*\.opencl", True, folders=("src",)),
    Project(
        "arrayfire/arrayfire",
        "492718b",
        r"src/backend/opencl/kernel/.*\.cl",
        True,
        drawn=23,
        folders=("src", "include"),
    ),
    Project(
        "hashcat/hashcat",
        "d3983ed",
        r"OpenCL/(?:amp_a[01]|m00000_a0-pure|m00100_a3-pure|markov_le)\.cl",
        True,
        drawn=5,
        folders=("OpenCL",),
    ),
    Project(
        "clMathLibraries/clBLAS",
        "cf91139",
        r"src/library/blas/gens/clTemplates/.*\.cl",
        True,
        drawn=6,
        folders=("src",),
    ),
    _cuda("turboderp-org/exllamav2", "da07fac", 8),
    _cuda("NVIDIA/FasterTransformer", "df4a753", 8, r"src/.*\.cu", ("src",)),
    _cuda("NVIDIA/cuda-samples", "c94ff36", 7, r".*\.cuh?"),
    _cuda("bitsandbytes-foundation/bitsandbytes", "95f9af3", 4),
    _cuda("bytedance/lightseq", "a7ab0da", 7),
    _cuda("Dao-AILab/causal-conv1d", "0d2252d", 3),
    _cuda("zjin-lcf/HeCBench", "f27000a", 8, r"src/.*-cuda/.*\.(?:cu|h)", ("src",)),
)

_HELD_OUT = (
    Project("LuxCoreRender/LuxCore", "d624e04", r".*\.cl", True, drawn=15, folders=("include", "src")),
    Project("clMathLibraries/clSPARSE", "62c93e6", r"src/.*\.(?:cl|cl\.h)", True, drawn=15, folders=("src",)),
    Project("xmrig/xmrig", "b2ca724", r"src/.*\.cl", True, drawn=15, folders=("src",)),
    Project("boostorg/compute", "cf79075", r"include/.*\.hpp|.*\.cl", True, drawn=15),
    Project("openwall/john", "3c2e19c", r"run/opencl/.*\.cl", True, drawn=15, folders=("run/opencl", "src")),
    Project("yuhc/gpu-rodinia", "9c10d3e", r"opencl/.*\.cl", drawn=15, folders=("opencl",)),
    _cuda("mit-han-lab/llm-awq", "d6e797a", 12, r".*\.cuh?"),
    _cuda("NVlabs/tiny-cuda-nn", "6ee3546", 12, r".*\.cuh?|.*\.h"),
    _cuda("rusty1s/pytorch_scatter", "648dda3", 11, r".*\.cuh?"),
    _cuda("gunrock/gunrock", "01f125c", 10, r".*\.(?:cuh?|hxx)"),
)
"""Ten projects drawn by lot after `init` was built on the others. One that is too large to fetch, or has less
than ten kernels, gave way to the next; so did those of the corpus on which rules were tried, but Rodinia."""


def _hip(repository: str, commit: str, drawn: int, files: str, folders: tuple[str, ...] = ()) -> Project:
    return Project(repository, commit, files, backend=Backend.HIP, drawn=drawn, folders=folders)


_OF_HIP = (
    _hip("zjin-lcf/HeCBench", "f27000a", 36, r"src/.*-hip/.*\.(?:cu|h)", ("src",)),
    _hip("ROCm/rocm-examples", "7dfb7d4", 12, r".*\.hip"),
    _hip("ROCm/HIP-Examples", "cdf9d10", 12, r"(?!.*cuda).*\.cpp"),
)

CORPORA = {"known": _KNOWN, "held_out": _HELD_OUT, "hip": _OF_HIP}
