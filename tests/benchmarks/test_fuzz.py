"""Some hundred made-up requests; `benchmarks/service/fuzz.py` makes thousands."""

from pathlib import Path

from benchmarks.service.fuzz import run
from testbed.deadlines import stretched


def test_no_request_breaks_the_service_or_its_description(postgres_url: str, tmp_path: Path) -> None:
    record = run(postgres_url, tmp_path, seconds=round(stretched(15)), seed=7, examples=3)
    told = "\n".join([str(record), *record.get("details", ())])
    assert record["failures"] == [], told
    assert record["errors"] == [], told
    assert record["operations"] >= 14
    assert record["cases"] >= 150, "it was not tried"
