"""The alert rules that the documents offer name metrics that there are."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from db.engine import Database
from db.views.metrics import samples

ROOT = Path(__file__).resolve().parents[2]
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "docs/prometheus-rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
SERVED = set(re.findall(r'"(warpsmith_\w+)"', (ROOT / "db" / "views" / "metrics.py").read_text()))
LABELS = {"queue", "cause", "outcome"}


def test_the_served_names_are_those_that_are_served(database: Database) -> None:
    with database.read() as session:
        found = {sample.name for sample in samples(session)}
    assert found
    assert found <= SERVED


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r["alert"])
def test_a_rule_is_whole_and_names_metrics_that_there_are(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["summary"].endswith(".")
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    named = re.findall(r"warpsmith_\w+", rule["expr"])
    assert named
    assert set(named) <= SERVED
    assert set(re.findall(r"[{,](\w+)=~?\"", rule["expr"])) <= LABELS
    for opening, closing in ("()", "{}", "[]"):
        assert rule["expr"].count(opening) == rule["expr"].count(closing)


def test_no_alert_is_there_twice() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) >= 8
