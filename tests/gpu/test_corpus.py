"""The adversarial corpus on CUDA: what only CUDA has, and the part that the other suites run on PoCL.

`benchmarks.trust.corpus --backend cuda` runs all of it.
"""

import pytest

from testbed.adversarial.corpus import KINDS, load
from testbed.adversarial.harness import Harness
from testbed.adversarial.verdict import PART, check_stated_verdict
from warpsmith.domain.device import Backend

ALL = {case.name: case for kind in KINDS for case in load(kind)}
ONLY = tuple(case.name for case in ALL.values() if case.backends == (Backend.CUDA,))
BOTH = tuple(name for name in PART if Backend.CUDA in ALL[name].backends)
LONG = {
    "cheats/d01_matmul_verifies_tiles.cu",
    "cheats/d05_silu_row_sniff.cl:looks_sparse",
    "cheats/d11_prefetch_past_the_end.cu",
    "cheats/d27_cuda_faults.cu:printf_flood",
    "honest/rms_dynamic_shared.cu",
    "honest/rms_forms.cl:fast_rsqrt",
    "honest/silu_cache_hints.cu",
    "honest/silu_writes_twice.cl:garbage_first",
}
"""Five seconds and more on an H200."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in (*ONLY, *BOTH)]
)
def test_a_case_gets_the_verdict_that_its_file_states(name: str, harness: Harness) -> None:
    """Expected verdict, and where it ends."""
    check_stated_verdict(harness, ALL[name], Backend.CUDA)
