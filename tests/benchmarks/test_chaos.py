"""Three jobs under faults; `benchmarks/service/chaos.py` runs hundreds."""

from pathlib import Path

from benchmarks.service.chaos import Load, run


def test_jobs_under_faults_all_end_once(tmp_path: Path) -> None:
    record = run(
        tmp_path,
        Load(jobs=3, workers=3, light=1, trials=10, trial_s=0.02),
        every_s=2.5,
        seed=3,
        limit_s=10,
        settings={"WARPSMITH_LEASE_S": "4", "WARPSMITH_RENEW_S": "1", "WARPSMITH_SWEEP_S": "0.5"},
    )
    assert record["failures"] == [], record
    assert record["errors_of_the_bench"] == []
    assert record["states"] == {"done": 3}
    assert record["trials"] == 30
    assert record["faults"], "nothing was disturbed"
