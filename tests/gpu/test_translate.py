"""`warpsmith translate` where both kernels run."""

from pathlib import Path

import pytest
import yaml

from tests.unit.hip.test_warp_widths import ACCEPTED, job_of
from warpsmith.cli.translate import translate
from warpsmith.cli.translated_runs import run_both
from warpsmith.domain.device import DeviceInfo
from warpsmith.hip.job_translation import translated_job
from warpsmith.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("family", ["merge_attn_states", "silu_and_mul", "split_row_sum"])
def test_an_example_agrees_with_its_translation(family: str, info: DeviceInfo) -> None:
    found = translate(ROOT / "examples" / family / "cuda.yaml", Settings())
    assert found.is_right, found.last
    assert found.last.startswith("agrees on ")
    assert found.last.endswith("; not run on AMD hardware")
    assert info.name in found.last


@pytest.mark.parametrize("name", ["a sum by functions", "a maximum in the kernel", "a named width"])
def test_exchanges_agree(name: str, info: DeviceInfo, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    job = job_of(ACCEPTED[name], rows=4, tolerances={"y": {"rtol": 0, "atol": 0}})
    path.write_text(yaml.safe_dump(job.model_dump(mode="json", exclude_unset=True)))
    found = translated_job(job)
    assert found.job is not None
    runs = run_both(job, found.job, True, info, Settings())
    assert runs.not_run == ""
    assert runs.workloads or "untestable" in runs.problem


def test_another_kernel_is_told_apart(info: DeviceInfo) -> None:
    from warpsmith.jobfile import load_job

    job = load_job(ROOT / "examples" / "silu_and_mul" / "cuda.yaml")
    found = translated_job(job)
    assert found.job is not None
    kernel = found.job.kernel
    changed = kernel.model_copy(update={"source": kernel.text.replace("1.0f", "1.01f")})
    assert changed.text != kernel.text
    runs = run_both(job, found.job.model_copy(update={"kernel": changed}), True, info, Settings())
    assert "differs, first in element" in runs.problem
