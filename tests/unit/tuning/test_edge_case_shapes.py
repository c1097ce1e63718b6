"""Shapes of edge cases, where a job leaves little to choose."""

from testbed.fakes import fake_ports
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.checks.edge_cases import EDGE_CASE_BYTES, LARGE, SCALED_ELEMENTS, proposed_edge_cases
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify.edge_cases import SPECIAL, kind_of


def session_with(shape: list[object], **changes: object) -> DeviceSession:
    """A job whose input has this shape beside the dimension `n`."""
    job = scale_job()
    data = job.model_dump(mode="json")
    next(a for a in data["kernel"]["arguments"] if a["name"] == "x")["shape"] = shape
    ports, _ = fake_ports(lambda configuration, workload: 100.0)
    return DeviceSession(type(job).model_validate(data | changes), ports)


def test_a_table_whose_size_follows_from_no_dimension_leaves_no_edge_case() -> None:
    assert proposed_edge_cases(session_with([EDGE_CASE_BYTES])) == []


def test_a_small_table_leaves_edge_cases() -> None:
    assert proposed_edge_cases(session_with(["n"]))


def test_special_values_lie_where_many_outputs_show_them() -> None:
    edge_cases = proposed_edge_cases(session_with(["n"], non_finite=True))
    sizes = {kind_of(w.variant): w.workload.dimensions["n"] for w in edge_cases}
    assert sizes.keys() >= SPECIAL
    assert all(n >= SCALED_ELEMENTS for kind, n in sizes.items() if kind in LARGE)
