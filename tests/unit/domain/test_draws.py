"""Draws that promise something of all elements: what they promise holds in every family and at every size."""

import base64
import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import ARRANGED, MAX_FILE_BYTES, Distribution, Draw, Routing
from warpsmith.domain.arguments.draw_checks import draw_problem
from warpsmith.domain.arguments.npy import parse_npy
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import BufferPlan, Family, plan_workload
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.job_checks.service_limits import service_findings
from warpsmith.job_files.jobfile import parse_job
from warpsmith.sandbox.transport.messages import plan_from_json, plan_to_json
from warpsmith.settings import Settings
from warpsmith.verify import arranged
from warpsmith.verify.inputs import draw_buffer


def buffer_of(*shape: int, dtype: Dtype = Dtype.INT32, **draw: Any) -> BufferPlan:
    return BufferPlan("x", dtype, Role.INPUT, shape, Draw(**draw))


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("elements", [1, 2, 3, 64, 1000, 70_001])
def test_a_permutation_stays_one_in_every_family(
    elements: int, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arranged, "PIECE_ELEMENTS", 999)
    buffer = buffer_of(elements, distribution=Distribution.PERMUTATION, low=5)
    drawn = draw_buffer(buffer, 7, family=family)
    assert np.array_equal(np.sort(drawn), np.arange(5, 5 + elements))
    if elements > 3:
        assert np.array_equal(drawn, draw_buffer(buffer, 7, family=family))
        is_random = family is not Family.SORTED
        assert (not np.array_equal(drawn, np.sort(drawn))) is is_random
        assert (not np.array_equal(drawn, draw_buffer(buffer, 8, family=family))) is is_random
        assert (not np.array_equal(drawn, draw_buffer(buffer, 7, 1, family=family))) is is_random


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("span", [100, 101, 4096, 2**40])
def test_distinct_integers_stay_distinct_and_in_their_range(span: int, family: Family) -> None:
    buffer = buffer_of(10, 10, dtype=Dtype.INT64, distribution=Distribution.DISTINCT, low=-3, high=span - 3)
    drawn = draw_buffer(buffer, 7, family=family)
    assert np.unique(drawn).size == 100
    assert drawn.min() >= -3
    assert drawn.max() < span - 3


def test_every_row_has_its_own_permutation_and_its_own_distinct_integers() -> None:
    rows = draw_buffer(buffer_of(50, 8, distribution=Distribution.PERMUTATION, per_row=True), 7).reshape(
        50, 8
    )
    assert (np.sort(rows, axis=1) == np.arange(8)).all()
    assert np.unique(rows, axis=0).shape[0] > 40
    picked = buffer_of(500, 2, distribution=Distribution.DISTINCT, high=4, per_row=True)
    pairs = draw_buffer(picked, 7).reshape(500, 2)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert np.unique(pairs, axis=0).shape[0] == 12


def test_a_permutation_is_even() -> None:
    """Every image of a place is about as frequent as another, over many draws."""
    buffer = buffer_of(2000, 6, distribution=Distribution.PERMUTATION, per_row=True)
    rows = draw_buffer(buffer, 11).reshape(2000, 6)
    counts = np.stack([np.bincount(rows[:, column], minlength=6) for column in range(6)])
    assert counts.min() > 260
    assert counts.max() < 410


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize(("steps", "high", "least"), [(1, 9, 0), (5, 5, 1), (40, 1000, 3), (700, 100, 0)])
def test_offsets_begin_and_end_where_they_must_and_keep_their_steps(
    steps: int, high: int, least: int, family: Family
) -> None:
    draw: dict[str, Any] = {"distribution": Distribution.OFFSETS, "low": 2, "high": high + 2, "least": least}
    drawn = draw_buffer(buffer_of(steps + 1, **draw), 7, family=family)
    assert (drawn[0], drawn[-1], drawn.size) == (2, high + 2, steps + 1)
    assert np.diff(drawn).min() >= least


def test_families_spread_the_lengths_of_ragged_batches() -> None:
    buffer = buffer_of(101, distribution=Distribution.OFFSETS, high=5000)
    of = {f: np.diff(draw_buffer(buffer, 7, family=f)) for f in Family}
    assert of[Family.REPEATED].min() == of[Family.REPEATED].max() == 50
    assert np.count_nonzero(of[Family.SPIKE]) == 1
    assert np.count_nonzero(of[Family.SPARSE]) <= 7
    assert (np.diff(of[Family.SORTED]) >= 0).all()
    assert of[Family.DECLARED].max() > 120


def test_a_mask_has_its_share_and_only_zeros_and_ones() -> None:
    for dtype in (Dtype.BOOL, Dtype.UINT8, Dtype.INT32, Dtype.FLOAT32, Dtype.FLOAT8_E4M3FN):
        buffer = buffer_of(20_000, dtype=dtype, distribution=Distribution.MASK, share=0.2)
        for family in Family:
            drawn = draw_buffer(buffer, 7, family=family).astype(np.float32)
            assert set(np.unique(drawn)) <= {0.0, 1.0}
        assert 0.18 < draw_buffer(buffer, 7).astype(np.float32).mean() < 0.22


def npy(values: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def job_data(draw: dict[str, Any], dtype: str = "int32", **dimensions: int) -> dict[str, Any]:
    return {
        "name": "gather",
        "kernel": {
            "backend": "opencl",
            "source": "__kernel void f(__global const int* x, __global int* y) { y[get_global_id(0)] = 1; }",
            "entry": "f",
            "arguments": [
                {"name": "x", "dtype": dtype, "role": "input", "shape": ["n"], "draw": draw},
                {"name": "y", "dtype": "int32", "role": "output", "shape": ["n"]},
            ],
            "launch": {"grid": ["n"], "block": [1]},
        },
        "workloads": [{"dimensions": {"n": 12, "pages": 40} | dimensions}],
    }


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (
            {"distribution": "distinct", "high": "pages // 4"},
            "draw.high: only 10 integers lie from low to high",
        ),
        (
            {"distribution": "distinct", "high": "page"},
            "draw.high: in expression 'page': unknown name 'page'",
        ),
        ({"distribution": "distinct", "high": 14.5}, "draw.high: 14.5 is no whole number"),
        (
            {"distribution": "permutation", "low": 2**31 - 3},
            "draw.high: 2147483656 is beyond what int32 holds",
        ),
        ({"distribution": "permutation", "low": -(2**31) - 1}, "draw.low: -2147483649 is below what int32"),
        ({"distribution": "offsets", "high": 10, "least": 1}, "draw.high: 11 steps of at least 1 from 0"),
        ({"distribution": "offsets", "high": 10, "least": -1}, "draw.least: must not be negative"),
        ({"distribution": "mask", "share": 1.5}, "draw.share: Input should be less than or equal to 1"),
        ({"distribution": "mask", "per_row": True}, "per_row: only for permutation, distinct and offsets"),
        ({"distribution": "file"}, "file: name a .npy file"),
        ({"distribution": "normal", "file": "x.npy"}, "file: normal reads no file"),
        ({"distribution": "file", "data": "@@@@"}, "data: is not base64"),
        ({"distribution": "file", "data": "AAAA"}, "data: is no .npy file"),
    ],
)
def test_a_draw_that_cannot_be_names_its_field(draw: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_job(job_data(draw))
    assert words in str(caught.value)
    assert caught.value.field.startswith("kernel.arguments.0")


def test_arranged_draws_are_of_integers() -> None:
    routing = {"part": "rows", "experts": 4, "chosen": 1, "block": 1}
    for distribution in ARRANGED:
        draw: dict[str, Any] = {"distribution": distribution.value, "high": 90}
        draw |= {"routing": routing} if distribution is Distribution.ROUTING else {}
        with pytest.raises(InvalidInput, match="gives integers, and the argument is float32"):
            parse_job(job_data(draw, "float32"))


def test_bounds_are_expressions_over_the_dimensions_of_each_workload() -> None:
    job = parse_job(job_data({"distribution": "distinct", "high": "pages * 2"}))
    for dimensions, most in (({"n": 12, "pages": 6}, 12), ({"n": 13, "pages": 9}, 18)):
        workload = job.workloads[0].model_copy(update={"dimensions": dimensions})
        plan = plan_workload(job.kernel, workload, {}, 3)
        assert plan_from_json(plan_to_json(plan)) == plan
        drawn = draw_buffer(plan.buffers[0], 3)
        assert drawn.max() < most
    neighbour = job.workloads[0].model_copy(update={"dimensions": {"n": 13, "pages": 6}})
    with pytest.raises(ExpressionError, match="only 12 integers"):
        plan_workload(job.kernel, neighbour, {}, 3)
    assert Job.model_validate(job.model_dump(mode="json")) == job


def test_values_come_from_a_file_that_travels_with_the_job(tmp_path: Path) -> None:
    values = np.array([7, 3, 7, 1] * 3, np.int32)
    (tmp_path / "values").mkdir()
    (tmp_path / "values" / "x.npy").write_bytes(npy(values))
    digest = hashlib.sha256(npy(values)).hexdigest()
    draw = {"distribution": "file", "file": "values/x.npy", "sha256": digest}
    job = parse_job(job_data(draw), tmp_path)
    again = Job.model_validate_json(job.model_dump_json())
    assert again == job
    plan = plan_workload(again.kernel, again.workloads[0], {}, 3)
    for family in Family:
        for variant in (0, 1):
            assert np.array_equal(draw_buffer(plan.buffers[0], 5, variant, family), values)
    assert not list(service_findings(again, Settings()))
    shorter = plan_workload(
        again.kernel, again.workloads[0].model_copy(update={"dimensions": {"n": 5}}), {}, 3
    )
    assert np.array_equal(draw_buffer(shorter.buffers[0], 5), values[:5])


@pytest.mark.parametrize(
    ("content", "extra", "words"),
    [
        (npy(np.zeros(11, np.int32)), {}, "file: has 11 elements; the argument has 12"),
        (npy(np.zeros(12, np.int64)), {}, "file: its elements are int64, not int32"),
        (npy(np.zeros(12, np.uint32)), {}, "file: its elements are uint32, not int32"),
        (npy(np.zeros(12, ">i4")), {}, "must be little-endian"),
        (npy(np.zeros((3, 4), np.int32, order="F")), {}, "is in Fortran order"),
        (npy(np.zeros(12, np.int32))[:-1], {}, "has 47 bytes of elements, not 48"),
        (npy(np.array([{}], object)), {}, "its elements must be plain numbers"),
        (npy(np.zeros(12, [("a", "i4")])), {}, "its elements must be plain numbers"),
        (b"\x93NUMPY\x01\x00\xff\x00" + b"(" * 300, {}, "header cannot be read"),
        (npy(np.zeros(12, np.int32)), {"sha256": "0" * 64}, "not those that the job was written for"),
        (None, {}, "cannot be read: No such file"),
    ],
    ids=range(11),
)
def test_a_file_that_cannot_be_used_says_why(
    content: bytes | None, extra: dict[str, str], words: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "x.npy").write_bytes(content)
    data = job_data({"distribution": "file", "file": "x.npy", **extra})
    with pytest.raises(InvalidInput) as caught:
        parse_job(data, tmp_path)
    assert words in str(caught.value)
    assert caught.value.field.startswith("kernel.arguments.0.draw")


def test_a_file_of_values_is_small(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(bytes(MAX_FILE_BYTES + 1))
    with pytest.raises(InvalidInput, match="bytes; at most 131072"):
        parse_job(job_data({"distribution": "file", "file": "x.npy"}), tmp_path)


def test_the_service_reads_no_files_and_checks_the_hash() -> None:
    named = parse_job(job_data({"distribution": "file", "file": "x.npy"}))
    assert [f.field for f in service_findings(named, Settings())] == ["kernel.arguments.0.draw.file"]
    data = base64.b64encode(npy(np.zeros(12, np.int32))).decode()
    with pytest.raises(InvalidInput, match="the file has another hash"):
        parse_job(job_data({"distribution": "file", "data": data, "sha256": "0" * 64}))


def test_types_that_numpy_lacks_come_as_raw_bits() -> None:
    assert parse_npy(npy(np.zeros(3, np.uint16))).kind == "uint"
    data = base64.b64encode(npy(np.full(12, 0x3F80, np.uint16))).decode()
    job = parse_job(job_data({"distribution": "file", "data": data}, "bfloat16"))
    plan = plan_workload(job.kernel, job.workloads[0], {}, 3)
    assert (draw_buffer(plan.buffers[0], 5).astype(np.float32) == 1.0).all()


def routing_part(part: str, elements: int, tokens: int, family: Family, **more: Any) -> Any:
    routing = {"part": part, "experts": 8, "chosen": 3, "block": 16, **more}
    return draw_buffer(
        BufferPlan(
            part,
            Dtype.INT32,
            Role.INPUT,
            (elements,),
            Draw(distribution=Distribution.ROUTING, high=tokens, routing=Routing.model_validate(routing)),
        ),
        7,
        family=family,
    )


@pytest.mark.parametrize("skew", [0.0, 1.5])
@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("tokens", [1, 5, 37, 1000])
def test_parts_of_a_routing_are_those_of_one_routing(tokens: int, family: Family, skew: float) -> None:
    elements = 3 * tokens + 8 * 15
    rows = routing_part("rows", elements, tokens, family, skew=skew)
    experts = routing_part("experts", elements // 16 + 1, tokens, family, skew=skew)
    (count,) = routing_part("count", 1, tokens, family, skew=skew)
    assert count % 16 == 0 and np.all(rows[count:] == 3 * tokens)
    assert np.array_equal(np.sort(rows[rows < 3 * tokens]), np.arange(3 * tokens))
    expert_of = np.repeat(experts[: count // 16], 16)
    assert np.all(np.diff(expert_of) >= 0)
    own = rows[:count] < 3 * tokens
    of_token: dict[int, set[int]] = {}
    for row, expert in zip(rows[:count][own], expert_of[own], strict=True):
        of_token.setdefault(row // 3, set()).add(int(expert))
    assert all(len(chosen) == 3 for chosen in of_token.values()), "no token has an expert twice"
    for expert in set(expert_of.tolist()):
        real = own[expert_of == expert]
        assert real[0] and np.all(np.diff(real.astype(int)) <= 0) and real[-16:].any(), "padding comes last"


def test_a_skewed_routing_fills_some_experts_more() -> None:
    even, skewed = (routing_part("experts", 200, 1000, Family.DECLARED, skew=s) for s in (0.0, 2.0))
    assert np.bincount(skewed).max() > 1.5 * np.bincount(even).max()


@pytest.mark.parametrize(
    ("part", "elements", "words"),
    [
        ("rows", 63, "64 elements may be filled; the argument has 63"),
        ("experts", 3, "4 elements"),
        ("count", 1, ""),
    ],
)
def test_a_routing_that_does_not_fit_says_so(part: Any, elements: int, words: str) -> None:
    draw = Draw(
        distribution=Distribution.ROUTING,
        high=4,
        routing=Routing(part=part, experts=4, chosen=2, block=16),
    )
    found = draw_problem(draw, Dtype.INT32, (elements,))
    assert words in found and bool(words) == bool(found)
    with pytest.raises(ValueError, match="cannot have 9 of 8 experts"):
        Routing(part="rows", experts=8, chosen=9, block=16)
    with pytest.raises(ValueError, match="belongs to distribution routing"):
        Draw(distribution=Distribution.NORMAL, routing=draw.routing)
