"""The numbers behind the chart of trials, as the browser computes them; run by Node, where there is one."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from testbed.deadlines import HANGS_S
from warpsmith.report.parts import FOLDER

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="no Node; the tests of pages run the same file in a browser"
)
SETUP = """
const data = require(process.argv[1]);
const points = (rows) => ({
  number: rows.map((r) => r[0]), at_s: rows.map((r) => r[1]), round: rows.map((r) => r[2]),
  candidate: rows.map(() => 0), gain: rows.map((r) => r[3]), outcome: rows.map((r) => r[4] || "measured"),
  rejection: rows.map((r) => (r[4] === "rejected" ? 0 : null)), reused: rows.map((r) => !!r[5]),
  rejections: [{ stage: "compile", reason: "no such type" }],
});
const first = [[0, 5, 1, 1.0], [1, 2, 1, 0.5], [2, 9, 2, null, "rejected"], [3, 7, 2, 2.0], [4, 8, 2, 1.5]];
const trials = data.merge(new Map(), points(first));
"""


def js(expression: str) -> Any:
    """The value of an expression, in JavaScript, about five trials."""
    assert NODE is not None
    code = f"{SETUP}\nconsole.log(JSON.stringify({expression}))"
    command = [NODE, "-e", code, str(FOLDER / "chart_data.js")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_best_so_far_rises_in_the_order_of_the_axis() -> None:
    assert js("data.series(trials, 'number').best") == [1.0, 1.0, 1.0, 2.0, 2.0]
    by_time = js("data.series(trials, 'at')")
    assert [t["number"] for t in by_time["list"]] == [1, 0, 3, 4, 2]
    assert (by_time["x"], by_time["best"]) == ([2, 5, 7, 8, 9], [0.5, 1.0, 2.0, 2.0, 2.0])
    assert js("data.series(new Map(), 'at')") == {"list": [], "x": [], "best": []}


def test_points_that_come_again_are_joined_by_number() -> None:
    again = "data.merge(trials, points([[4, 8, 2, 3.0], [5, 10, 2, 1.0], [6, 10.5, 2, null, 'cut_short']]))"
    assert js(f"[...{again}.keys()]") == [0, 1, 2, 3, 4, 5, 6]
    assert js(f"{again}.get(4).gain") == 3.0
    assert js("data.merge(trials, points([])).size") == 5


def test_each_answer_has_words_of_its_own() -> None:
    other = "{...points([[7, 1, 1, null, 'rejected']]), rejections: [{stage: 'run', reason: 'crashed'}]}"
    merged = js(f"[...data.merge(trials, {other}).values()].map((t) => [t.number, t.stage, t.reason])")
    assert [2, "compile", "no such type"] in merged and [7, "run", "crashed"] in merged


def test_steps_are_the_trials_that_were_better_than_all_before() -> None:
    assert js("data.steps(data.series(trials, 'number').list).map((t) => t.number)") == [0, 3]
    assert js("data.steps(data.series(trials, 'at').list).map((t) => t.number)") == [1, 0, 3]


def test_rounds_begin_with_their_first_trial_that_was_run() -> None:
    assert js("data.rounds(data.series(trials, 'number').list, 'number')") == [
        {"round": 1, "x": 0},
        {"round": 2, "x": 2},
    ]
    reused = "data.merge(trials, points([[5, 1, 3, 1.0, 'measured', true]]))"
    assert len(js(f"data.rounds(data.series({reused}, 'number').list, 'number')")) == 2


@pytest.mark.parametrize(
    ("x", "y", "index"), [(10, 10, 1), (13, 10, 1), (19, 11, 2), (55, 10, -1), (10, 60, -1), (0, 0, 0)]
)
def test_the_nearest_point_is_found(x: float, y: float, index: int) -> None:
    across, down = "(i) => [0, 10, 20, 30][i]", "(i) => [0, 10, 10, 90][i]"
    assert js(f"data.nearest(4, {across}, {down}, {x}, {y}, 24)") == index


def test_words_say_what_came_of_trials() -> None:
    assert js("data.summary([...trials.values()], true)") == (
        "5 trials: 4 measured, 1 rejected. Best in the search: 2.00×, trial 3, after 7.0 s."
    )
    assert js("data.summary([], true)") == "No trial has ended yet."
    assert js("data.title(trials.get(2), true)") == "Trial 2 · round 2 · rejected at compile · after 9.0 s"
    assert js("data.title(trials.get(3), false)") == "Trial 3 · round 2 · 2.00×"
    assert js("[59.6, 200, 7500, null].map(data.seconds)") == ["60 s", "3 min 20 s", "2 h 5 min", "–"]


def test_configurations_of_a_file_are_put_together() -> None:
    columns = (
        "[{name: 'B', values: ['64', '32'], index: [0, 1]}, {name: 'V', values: ['x'], index: [null, 0]}]"
    )
    assert js(f"[...data.configurations([7, 9], {columns})]") == [[7, "B=64"], [9, "B=32, V=x"]]
    assert js("data.configuration({})") == "no parameters"


def test_ten_thousand_trials_are_arranged_at_once() -> None:
    rows = "Array.from({length: 10000}, (_, n) => [n, n / 10, 1 + n % 3, Math.random()])"
    took_ms = js(
        f"(() => {{ const p = points({rows}); const t = performance.now();"
        " data.series(data.merge(new Map(), p), 'at'); return performance.now() - t })()"
    )
    assert took_ms < 2000
