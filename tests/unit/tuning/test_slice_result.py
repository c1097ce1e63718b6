"""Results of slices that older versions stored."""

from typing import Any

import pytest

from warpsmith.domain.state import SliceEnd
from warpsmith.tuning.tasks import SliceResult


@pytest.mark.parametrize(
    ("old", "end"),
    [
        ({"exhausted": False, "spent": False, "rejected": "", "feasible": None}, SliceEnd.LIMIT),
        ({"exhausted": True, "spent": False, "rejected": "", "feasible": 12}, SliceEnd.EXHAUSTED),
        ({"exhausted": False, "spent": True, "rejected": "", "feasible": 12}, SliceEnd.SPENT),
        ({"exhausted": False, "spent": False, "rejected": "compile: no", "feasible": 12}, SliceEnd.REJECTED),
        ({"exhausted": True}, SliceEnd.EXHAUSTED),
        ({}, SliceEnd.LIMIT),
    ],
)
def test_what_older_versions_stored_loads(old: dict[str, Any], end: SliceEnd) -> None:
    loaded = SliceResult.model_validate({"trials": 7, "seconds": 1.5, "faults": [], **old})
    assert loaded == SliceResult(trials=7, seconds=1.5, ended_by=end, reason=old.get("rejected", ""))
    assert SliceResult.model_validate_json(loaded.model_dump_json()) == loaded
