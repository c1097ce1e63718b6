"""The suites of `warpsmith.testing` on CUDA."""

import pytest

from testbed.contract_suites import (
    TestBackend,
    TestCompiler,
    TestDevice,
    TestReference,
    UnderTest,
    asked,
    build,
    compiler,
    kernel,
    module,
    opened,
    opener,
    reference,
)
from warpsmith.backends.cuda import backend as cuda
from warpsmith.domain.device import Backend

__all__ = [
    "TestBackend",
    "TestCompiler",
    "TestDevice",
    "TestReference",
    "asked",
    "build",
    "compiler",
    "kernel",
    "module",
    "opened",
    "opener",
    "reference",
]


@pytest.fixture(scope="module")
def under_test() -> UnderTest:
    return UnderTest(Backend.CUDA, cuda, "nvrtc")
