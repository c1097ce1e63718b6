"""Which kernels count as the same, and which as alike."""

from typing import Any

import numpy as np
import pytest

from testbed.kernels.kernel_kinds import KINDS
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.tuning.lessons.kernel_likeness import SKETCH_SIZE, likeness, sketch


def scale(source: str = SCALE_SOURCE, **changes: object) -> Kernel:
    kernel = scale_job().kernel.model_dump(mode="json")
    return Kernel.model_validate(kernel | {"source": source} | changes)


def alike(one: Kernel, other: Kernel) -> float:
    return float(likeness(sketch(one), sketch(other)[None, :])[0])


def test_comments_and_blanks_make_no_other_kernel() -> None:
    shown = "// doubles\n" + SCALE_SOURCE.replace("y[i] = ", "\n      y[i] =  /* here */ ")
    assert fingerprint(scale(shown)) == fingerprint(scale(SCALE_SOURCE))


@pytest.mark.parametrize(
    "change",
    [
        {"source": SCALE_SOURCE.replace("2.0f", "3.0f")},
        {"options": ["-cl-fast-relaxed-math"]},
        {"launch": {"grid": ["ceil_div(n, BLOCK * PER)"], "block": ["BLOCK * 2"]}},
        {"files": {"other.h": "// nothing\n"}},
    ],
    ids=["source", "options", "launch", "headers"],
)
def test_what_can_change_results_or_times_makes_another_kernel(change: dict[str, Any]) -> None:
    assert fingerprint(scale(**change)) != fingerprint(scale())


def test_a_sibling_of_another_type_with_other_names_is_the_same_to_a_sketch() -> None:
    sibling = SCALE_SOURCE.replace("float", "half").replace("x[", "values[").replace("* x", "* values")
    assert alike(scale(sibling), scale(SCALE_SOURCE)) == 1


def test_an_epilogue_leaves_kernels_alike_and_other_kinds_do_not() -> None:
    epilogue = SCALE_SOURCE.replace("2.0f * x[i]", "fmax(2.0f * x[i], 0.0f)")
    assert alike(scale(epilogue), scale(SCALE_SOURCE)) > 0.6
    sketches = np.stack([sketch(scale(kind.head + kind.body)) for kind in KINDS])
    others = [likeness(sketches[n], np.delete(sketches, n, axis=0)) for n in range(len(sketches))]
    assert np.median(np.concatenate(others)) < 0.4
    assert sketches.shape == (len(KINDS), SKETCH_SIZE)
