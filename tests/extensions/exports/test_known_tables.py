"""Winners of an engine's tables, and the chances of a fused MoE's configurations by them."""

import json
from pathlib import Path

import numpy as np
import pytest

from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.templates.space import SHAPE_PREFIX, Parameter, Space
from warpsmith.extensions.exports.tables.engines import NEEDED, MoeShape
from warpsmith.extensions.exports.tables.known_tables import TOLD, known_winners
from warpsmith.search.models.known_winners import log_chances
from warpsmith.search.spaces.feasible_set import FeasibleSet, enumerate_space

SMALL, LARGE = (16, 64, 128, 1, 4, 3), (128, 256, 64, 32, 8, 4)
VALUES = ((16, 64, 128), (64, 128, 256), (64, 128), (1, 64), (4, 8), (3, 4))
SIZES = (16, 32, 2048)


def space() -> FeasibleSet:
    """All configurations of three batch sizes."""
    parameters = [Parameter(name=n, values=v) for n, v in zip(NEEDED, VALUES, strict=True)]
    return enumerate_space(
        Space(parameters=(*parameters, Parameter(name=f"{SHAPE_PREFIX}M", values=SIZES))), []
    )


def winner(tokens: int, values: tuple[int, ...], weight: float = 1.0) -> KnownWinner:
    row = {n: v for n, v in zip(NEEDED, values, strict=True) if n in TOLD}
    return KnownWinner(dimensions={"M": tokens}, configuration=row, weight=weight)


def write(folder: Path, name: str, tokens: int, values: tuple[int, ...]) -> None:
    """A table of one row."""
    folder.mkdir(exist_ok=True)
    table = {"triton_version": "3.6.0", str(tokens): dict(zip(NEEDED, values, strict=True))}
    (folder / name).write_text(json.dumps(table))


def test_tables_of_the_devices_in_half_precision_are_read_once(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        write(folder, "E=8,N=3584,device_name=NVIDIA_H100_80GB_HBM3.json", 16, SMALL)
    write(tmp_path, "E=8,N=1792,device_name=NVIDIA_H100_80GB_HBM3.json", 16, LARGE)
    write(tmp_path, "E=8,N=3584,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json", 16, LARGE)
    write(tmp_path, "E=8,N=3584,device_name=NVIDIA_A100-SXM4-80GB.json", 16, LARGE)
    write(tmp_path, "E=8,N=3584,device_name=NVIDIA_H100_80GB_HBM3_down.json", 16, LARGE)
    write(
        tmp_path,
        "E=8,N=896,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128, 128].json",
        16,
        SMALL,
    )
    (tmp_path / "E=8,N=1,device_name=NVIDIA_H100_80GB_HBM3.json").write_text("[]")
    found = known_winners(tmp_path, MoeShape(8, 1792), "NVIDIA H200")
    assert found == [winner(16, LARGE), winner(16, SMALL, float(np.exp(-0.5)))]
    quantised = known_winners(tmp_path, MoeShape(8, 1792, "fp8_w8a8", (128, 128)), "NVIDIA H100 80GB HBM3")
    assert [w.weight for w in quantised] == [pytest.approx(np.exp(-0.5))]
    assert known_winners(tmp_path, MoeShape(8, 1792), "NVIDIA L4") == []


def test_the_winner_of_the_nearest_batch_size_is_likeliest_in_any_order_of_blocks() -> None:
    feasible = space()
    found = log_chances(feasible, [winner(16, SMALL), winner(4096, LARGE)])
    assert found is not None
    rows = [feasible.configuration(r) for r in range(len(feasible))]
    for tokens, values in ((16, SMALL), (32, SMALL), (2048, LARGE)):
        here = [r for r, c in enumerate(rows) if c[f"{SHAPE_PREFIX}M"] == tokens]
        best = sorted(here, key=lambda r: -found[r])[:2]
        told = dict(zip(NEEDED, values, strict=True))
        assert all(rows[r][n] == told[n] for r in best for n in TOLD)
        assert {rows[r]["GROUP_SIZE_M"] for r in best} == {1, 64}


def test_no_configuration_is_ruled_out() -> None:
    found = log_chances(space(), [winner(16, SMALL)])
    assert found is not None
    assert np.isfinite(found).all() and found.min() > np.log(0.03 / (len(space()) / len(SIZES)))


def test_winners_of_other_dimensions_and_parameters_tell_nothing() -> None:
    other = KnownWinner(dimensions={"K": 16}, configuration={"BLOCK_SIZE_M": 16})
    assert log_chances(space(), [other]) is None
    assert log_chances(space(), [KnownWinner(dimensions={"M": 1}, configuration={"TILE": 1})]) is None
    assert log_chances(space(), []) is None
