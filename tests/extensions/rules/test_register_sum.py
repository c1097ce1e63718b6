"""Sums in registers: right on every shape, and every reason to decline."""

from pathlib import Path

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from tests.element_kernels import PRODUCT, PRODUCT_RETURN, ROWS, product_job, times_job
from tests.extensions.rules.test_declines import reason
from tests.extensions.rules.test_opencl import feasible
from warpsmith.extensions.rules.templater import make_template

UPDATE = "c[i * columns + j] += 2.0f * a[i * inner + k] * b[k * columns + j];"


@pytest.mark.parametrize(("source", "kept"), [(PRODUCT, "ws_sum_0"), (PRODUCT_RETURN, "sum")])
def test_products_are_right(source: str, kept: str, tmp_path: Path) -> None:
    job = product_job(source)
    template = make_template(job).template
    assert f"{kept} +=" in template.kernel.text
    cases = [
        OpenClCase(job.name, job, template.configured(c), w)
        for n, w in enumerate(job.workloads)
        for c in feasible(template, w, seed=n, count=4)
    ]
    assert run_opencl(cases, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (UPDATE, "c[i * columns + j] += c[i * columns] * a[i * inner + k];", "not the only use of c"),
        (UPDATE, "c[i * columns + k] += a[i * inner + k];", "differs between iterations"),
        (UPDATE, "c[(int)a[k]] += a[i * inner + k];", "differs between iterations"),
        (UPDATE, UPDATE + " barrier(CLK_LOCAL_MEM_FENCE);", "calls barrier"),
        (UPDATE, "c[i] = a[k];", "no element of memory"),
    ],
)
def test_an_element_that_may_be_another_stays_in_memory(old: str, new: str, why: str) -> None:
    found = reason(make_template(product_job(PRODUCT.replace(old, new))), "register_sum")
    assert why in found, found


def test_an_element_is_left_alone_where_the_loop_has_no_iteration() -> None:
    text = make_template(times_job(ROWS)).template.kernel.text
    assert "if (((0) < (columns))) ws_sum_0 = y[i];" in text
    assert "if (((0) < (columns))) y[i] = ws_sum_0;" in text
    conditional = ROWS.replace("y[i] += a", "if (x[j] > 0) y[i] += a")
    assert "left alone" in reason(make_template(times_job(conditional)), "register_sum")
