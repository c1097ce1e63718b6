"""Which projects the kernels come from, and at which commits."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.opencl_corpus.sources import Project, fetch

_CODE = ("cu", "cuh", "h", "hpp", "inl")

PROJECTS = (
    Project(
        "flashinfer",
        "flashinfer-ai/flashinfer",
        "fb28d7242b3506a2348265962041acc1fb56cca4",
        "**",
        endings=_CODE,
    ),
    # vLLM's own kernels, as its fork at this commit has them.
    Project(
        "vllm",
        "aphrodite-engine/aphrodite-engine",
        "b42eeec22c42d9a485bab4a8784b26abccf44515",
        "**",
        endings=_CODE,
    ),
    Project(
        "sglang",
        "bytedance-iaas/sglang",
        "6ed5780c4fd3075edd8a76fe6f09af51e4e900a6",
        "**",
        endings=_CODE,
    ),
    Project("ggml", "ggml-org/ggml", "d99724f2b141fed9e1a9f402213506c081433465", "**", endings=_CODE),
    Project("llm.c", "karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a", "**", endings=_CODE),
)
# Further projects of `benchmarks/agents/kernels`.
FOR_AGENTS = (
    # It carries kernels of vLLM and SGLang, one file for each.
    Project(
        "fastkernels",
        "Snowflake-AI-Research/fastkernels",
        "21f84ee41ca5f495fa4b26cb74e756490a98d4fe",
        "fastkernels",
        endings=("cu",),
    ),
    Project(
        "hecbench",
        "zjin-lcf/HeCBench",
        "f27000a5188f8ac79bd43fc95a1b3f890c18823d",
        "src",
        endings=("cu", "h"),
    ),
)


def fetch_all(
    checkouts: Path, mirrors: Path | None, projects: Iterable[Project] = PROJECTS
) -> dict[str, Path]:
    """Check out every one of the projects below `checkouts`; their roots by name.

    Args:
        mirrors: folder with a git directory for each repository, `OWNER+NAME/repo`; None: GitHub.
    """
    checkouts.mkdir(parents=True, exist_ok=True)
    roots = {}
    for project in projects:
        fetch(project, checkouts, mirrors)
        roots[project.name] = checkouts / project.name
    return roots
