"""Launches between pages without access rights, with inputs that nobody may write, on PoCL."""

from collections.abc import Iterator

import pytest

from tests.sandbox.kernels import built, plan, size, source
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import ChildOpener, CompilePool, probe_devices, sanitizer_for
from warpsmith.sandbox.hosts.guard_pages_host import GuardPages

N = 1001
"""Its buffers end between two multiples of any alignment."""
PLACES = ("guard pages behind", "guard pages before", "guard pages right behind")


@pytest.fixture(scope="module")
def info() -> DeviceInfo:
    return probe_devices([Backend.OPENCL]).devices[0]


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    made = CompilePool(1)
    yield made
    made.close()


def found(pool: CompilePool, info: DeviceInfo, body: str) -> dict[str, str]:
    """Findings for a kernel with this body, by tool; those without any are left out."""
    by = sanitizer_for(info, ChildOpener(info))
    assert isinstance(by, GuardPages)
    findings = by.findings(built(pool, info, source(Backend.OPENCL, body)), plan(N), size(N))
    assert {"write protection", *PLACES[:2]} <= set(findings) <= {"write protection", *PLACES}
    return {tool: words for tool, words in findings.items() if words}


SCALES = "y[i] = 2.0f * x[i];"
WRITES = "__global volatile float* w = (__global volatile float*)x; const float v = w[i];"


@pytest.mark.parametrize(
    ("body", "places", "words"),
    [
        (f"if (x[i + 1] == 1234.5f) return; {SCALES}", PLACES[2:], "reads or writes past the end of x"),
        (f"if (x[i - 1] == 1234.5f) return; {SCALES}", PLACES[:2], "reads or writes before the start of x"),
        (f"if (y[i + 4000] == 1.5f) return; {SCALES}", PLACES, "reads or writes past the end of y"),
        (f"{WRITES} w[i] = v; {SCALES}", ["write protection"], "writes to the input x"),
        (f"{WRITES} w[i] = -v; w[i] = v; {SCALES}", ["write protection"], "writes to the input x"),
        (f"*(__global volatile float*)8 = 1.0f; {SCALES}", PLACES[:2], "ended its process: ended by SIGSEGV"),
    ],
    ids=["behind", "before", "far_behind", "same_value", "restored", "elsewhere"],
)
def test_what_no_guard_zone_shows_is_found(
    pool: CompilePool, info: DeviceInfo, body: str, places: list[str], words: str
) -> None:
    assert found(pool, info, body) == dict.fromkeys(places, words)


def test_one_launch_tells_of_every_buffer(pool: CompilePool, info: DeviceInfo) -> None:
    """A fault does not end the launch."""
    both = found(pool, info, f"if (x[i + 4000] == 1.5f || y[i - 4000] == 1.5f) return; {SCALES}")
    words = "reads or writes past the end of x, before the start of y"
    assert both == dict.fromkeys(PLACES, words)


@pytest.mark.parametrize(
    "body",
    [
        SCALES,
        "if (4 * i + 3 < n) vstore4(2.0f * vload4(i, x), i, y); else if (4 * i < n) y[i] = x[i];",
        # Needs buffers that are aligned to 64 bytes.
        "if (i < n / 16) ((__global float16*)y)[i] = 2.0f * ((__global const float16*)x)[i];",
    ],
    ids=["scales", "vectors", "aligned_vectors"],
)
def test_an_honest_kernel_has_no_findings(pool: CompilePool, info: DeviceInfo, body: str) -> None:
    assert found(pool, info, body) == {}
