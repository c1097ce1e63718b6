"""The dashboard that the documents offer shows every metric, and only metrics that there are."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.db.test_alerts import SERVED

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
LABELS = {"state", "queue", "kind", "cause", "outcome", "device_class", "role", "provider"}
FUNCTIONS = {"sum", "max", "rate", "increase", "delta", "by"}


def expressions(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def test_every_metric_is_shown_and_no_other() -> None:
    named = {name for panel in SHOWN for e in expressions(panel) for name in re.findall(r"warpsmith_\w+", e)}
    assert named == SERVED


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: str(panel["title"]))
def test_a_panel_is_whole(panel: dict[str, Any]) -> None:
    assert panel["datasource"]["uid"] == "${datasource}"
    assert panel["fieldConfig"]["defaults"]["unit"]
    for expression in expressions(panel):
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing)
        labels = re.findall(r"[{,] *(\w+) *[=!]~?", expression)
        labels += [
            label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")
        ]
        assert set(labels) <= LABELS
        assert set(re.findall(r"\b([a-z]+) ?\(", expression)) <= FUNCTIONS
    for target in panel["targets"]:
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= LABELS


def test_a_rate_is_taken_of_counters_and_of_nothing_else() -> None:
    for panel in SHOWN:
        for expression in expressions(panel):
            rated = set(re.findall(r"(?:rate|increase)\((warpsmith_\w+)", expression))
            assert all(name.endswith("_total") for name in rated)
            assert rated == {n for n in re.findall(r"warpsmith_\w+", expression) if n.endswith("_total")}


def test_panels_lie_beside_each_other() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations((panel["gridPos"] for panel in PANELS), 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)
