"""What a job would hold is worked out from its shapes, and refused where it fits nowhere."""

import itertools
from pathlib import Path

import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.memory import all_bytes, buffer_bytes, check_memory, fitting
from warpsmith.errors import InvalidInput
from warpsmith.sandbox.confinement.confine import machine_memory
from warpsmith.testing.jobs import DEVICE, scale_job

GIB = 1 << 30


def device(
    memory_gib: float, host_gib: float = 0, shares_host: bool = False, name: str = "big"
) -> DeviceInfo:
    limits = DEVICE.limits.model_copy(update={"total_memory_bytes": int(memory_gib * GIB)})
    changes = {"limits": limits, "host_memory_bytes": int(host_gib * GIB), "shares_host": shares_host}
    return DEVICE.model_copy(update={**changes, "name": name})


def job_of(*sizes: int, reference: str = "numpy", **changes: object) -> Job:
    fields = {"workloads": [{"dimensions": {"n": n}} for n in sizes], **changes}
    return scale_job(**fields, **({} if reference == "numpy" else {"reference": {"kind": "kernel"}}))


def test_the_bytes_of_a_workload_are_those_of_its_buffers() -> None:
    job = job_of(1000)
    assert buffer_bytes(job, job.workloads[0]) == {"x": 4000, "y": 4000}


def test_a_job_holds_two_memories_of_its_buffers_and_more_on_the_host() -> None:
    job = job_of(1_000_000)
    need = all_bytes(job)
    assert (need.process, need.device) == (8_000_000, 16_000_000)
    own = all_bytes(job_of(1_000_000, reference="kernel"))
    assert own.device == need.device
    assert own.host < need.host, "a NumPy reference computes on float64"


def test_inout_buffers_are_held_twice() -> None:
    source = scale_job().model_dump(mode="json", exclude_unset=True)
    source["kernel"]["arguments"][1]["role"] = "inout"
    job = Job.model_validate(source | {"workloads": [{"dimensions": {"n": 1_000_000}}]})
    assert all_bytes(job).process == 12_000_000


def test_workloads_are_held_together() -> None:
    job = job_of(1_000_000, 2_000_000)
    assert all_bytes(job).process == sum(all_bytes(job_of(n)).process for n in (1_000_000, 2_000_000))


def test_rotating_sets_are_counted_where_the_device_is_known() -> None:
    job = job_of(1 << 20)
    one, many = all_bytes(job), all_bytes(job, device(80))
    assert many.process > one.process
    assert many.process <= one.process + device(80).limits.total_memory_bytes // 8


@pytest.mark.parametrize(("n", "holds"), [(3_000_000_000, "24"), (100_000_000_000, "800")])
def test_a_job_too_large_for_every_device_is_refused_with_both_figures(n: int, holds: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_memory(job_of(1000, n), [device(8, name="small"), device(16)])
    words = str(caught.value)
    assert caught.value.field == "workloads.1.dimensions"
    assert f"n={n}" in words and "x alone" in words
    assert "17.2 GB" in words, "what the largest device has"
    process = all_bytes(job_of(1000, n), device(16)).process
    assert f"{process / 1e9:.0f}" == holds
    assert "lower the dimensions" in words


def test_one_device_that_has_the_memory_is_enough() -> None:
    check_memory(job_of(500_000_000), [device(2, name="small"), device(80)])
    assert fitting(job_of(500_000_000), [device(2, name="small"), device(80)]) == [device(80)]


def test_where_nothing_fits_the_worker_says_so() -> None:
    offered = [device(2), device(4)]
    assert fitting(job_of(5_000_000_000), offered) == offered


def test_the_memory_of_the_machine_counts_as_well() -> None:
    check_memory(job_of(500_000_000), [device(80, host_gib=64)])
    with pytest.raises(InvalidInput, match=r"the machine of opencl-big-1 grants 17\.2 GB"):
        check_memory(job_of(500_000_000), [device(80, host_gib=16)])


def test_where_kernels_run_on_the_host_its_memory_holds_both() -> None:
    apart, shared = (all_bytes(job_of(1_000_000), device(80, shares_host=s)) for s in (False, True))
    assert shared.host > apart.host


def test_the_operators_cap_holds_without_any_device() -> None:
    check_memory(job_of(1_000_000), [], 1 << 30)
    check_memory(job_of(3_000_000_000), [], 0)
    with pytest.raises(InvalidInput, match=r"the operator permits a job 1\.07 GB") as caught:
        check_memory(job_of(3_000_000_000), [], 1 << 30)
    assert caught.value.field == "workloads.0.dimensions"


def test_a_device_that_does_not_say_its_memory_refuses_nothing() -> None:
    check_memory(job_of(3_000_000_000), [DEVICE])


def test_shapes_that_name_the_device_are_worked_out_for_it() -> None:
    source = scale_job().model_dump(mode="json", exclude_unset=True)
    source["kernel"]["arguments"][0]["shape"] = ["n * device.multiprocessors"]
    job = Job.model_validate(source | {"workloads": [{"dimensions": {"n": 1_000_000_000}}]})
    check_memory(job)
    with pytest.raises(InvalidInput, match="n=1000000000"):
        check_memory(job, [device(8)])


def test_the_smallest_limit_of_a_container_is_the_machines_memory(tmp_path: Path) -> None:
    whole = machine_memory(tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:cpu,memory:/a/b\n0::/c/d\n")
    folders = ["sys/fs/cgroup/memory/a/b", "sys/fs/cgroup/memory/a", "sys/fs/cgroup/c/d", "sys/fs/cgroup/c"]
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    files = [f"{f}/{'memory.limit_in_bytes' if 'memory' in f else 'memory.max'}" for f in folders]
    for file in files:
        (tmp_path / file).write_text("max\n")
    assert machine_memory(tmp_path) == whole
    for size, file in zip(itertools.count(9 << 20, -(1 << 20)), files, strict=False):
        (tmp_path / file).write_text(f"{size}\n")
        assert machine_memory(tmp_path) == size, file
