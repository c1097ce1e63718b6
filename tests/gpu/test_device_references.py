"""References that CuPy computes on the device hold what NumPy's do."""

from collections.abc import Iterator

import numpy as np
import pytest

from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.errors import InvalidInput
from warpsmith.sandbox import ReferenceRunner, device_references, probe_devices
from warpsmith.sandbox.hosts.kept_children import KeptChildren
from warpsmith.testing.kernels import plan
from warpsmith.testing.reference_contract import NumpyReferenceContract, output

pytest.importorskip("cupy")

SOURCES = (
    "{'y': np.exp(x) / np.exp(x).sum()}",
    "{'y': np.sort(x)[::-1]}",
    "{'y': np.where(x > 0, x, 0.01 * x)}",
    "{'y': x / np.sqrt((x * x).mean(keepdims=True) + 1e-5)}",
    "{'y': 0.5 * x * (1 + np.tanh(0.79788 * (x + 0.044715 * x**3)))}",
    "{'y': np.cumsum(x)}",
    "{'y': np.roll(x, 1) + x[::-1]}",
)
NEEDS_NUMPY = (
    "import numpy as np\ndef reference(inputs, dims): return {'y': np.vectorize(float)(inputs['x'])}"
)
ASKS_THE_NET = "import socket\ndef reference(inputs, dims): socket.socket(); return {'y': inputs['x']}"
READS_ALL = """
import os
def reference(inputs, dims):
    os.listdir(os.path.expanduser('~root'))
    return {'y': inputs['x']}
"""
FORKS = "import os\ndef reference(inputs, dims): os.fork(); return {'y': inputs['x']}"


@pytest.fixture(scope="module")
def device() -> DeviceInfo:
    return probe_devices([Backend.CUDA]).devices[0]


@pytest.fixture(scope="module")
def reference(device: DeviceInfo) -> Iterator[ReferenceRunner]:
    kept = KeptChildren(60.0)
    made = device_references(device, kept)
    assert made is not None
    yield made
    kept.end_all()


class TestDeviceReferences(NumpyReferenceContract):
    """The suite of `warpsmith.testing`, with CuPy."""


@pytest.mark.parametrize("body", SOURCES)
def test_it_computes_what_numpy_does(reference: ReferenceRunner, body: str) -> None:
    source = f"import numpy as np\ndef reference(inputs, dims):\n    x = inputs['x']\n    return {body}"
    cases = [(plan(n, seed=n), {"n": n}) for n in (1000, 3_000_000)]
    there, here = (
        reference.numpy_many(source, "reference", cases),
        ReferenceRunner().numpy_many(source, "reference", cases),
    )
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(output(a).astype(float), output(b).astype(float), rtol=1e-11, atol=1e-11)


def test_what_it_lacks_is_an_error(reference: ReferenceRunner) -> None:
    (found,) = reference.numpy_many(NEEDS_NUMPY, "reference", [(plan(1000), {"n": 1000})])
    assert isinstance(found, InvalidInput)


@pytest.mark.parametrize("source", [ASKS_THE_NET, READS_ALL, FORKS])
def test_it_may_not_do_more_than_on_the_host(reference: ReferenceRunner, source: str) -> None:
    (found,) = reference.numpy_many(source, "reference", [(plan(1000), {"n": 1000})])
    assert isinstance(found, InvalidInput)
    assert "ermi" in str(found) or "not permitted" in str(found)
