"""Draws the gain of each kernel, by rules and by a model's template, from the record of the agents' runs.

Run: python -m benchmarks.agents.gains_picture; it writes docs/pictures/gains-light.svg and gains-dark.svg.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks/results/agents/h100.json"
FOLDER = ROOT / "docs/pictures"
ARMS = ("rules", "template")
# Colours of GitHub's two themes, for a transparent ground.
THEMES = {
    "light": {"ink": "#1f2328", "faint": "#d1d9e0", "rules": "#818b98", "template": "#0969da"},
    "dark": {"ink": "#f0f6fc", "faint": "#3d444d", "rules": "#9198a1", "template": "#4493f8"},
}
PROJECTS = {
    **dict.fromkeys(("served_topk_softmax", "served_moe_sum", "served_softmax"), "SGLang"),
    "served_layer_norm": "llm.c",
    "served": "vLLM",
    "hec": "HeCBench",
}
WIDTH, LEFT, RIGHT, TOP, ROW = 760, 225, 150, 46, 24


class Gain(NamedTuple):
    """Speed-up of one job over its kernel as posted: estimate and 95 % interval."""

    estimate: float
    low: float
    high: float


def gain_of(job: Mapping[str, Any]) -> Gain:
    """Weighted geometric mean over a job's workloads; one that keeps its kernel counts as 1."""
    if job["speedup"] == 1.0:
        return Gain(1.0, 1.0, 1.0)
    found = {c["workload"]: c["speedup"] for c in job["comparisons"] if c["verdict"] == "faster"}
    weights = {w["key"]: w["weight"] / sum(v["weight"] for v in job["workloads"]) for w in job["workloads"]}
    logs = {
        bound: sum(weights[key] * math.log(found[key][bound]) for key in weights if key in found)
        for bound in Gain._fields
    }
    return Gain(**{bound: math.exp(value) for bound, value in logs.items()})


def gains(jobs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Gain]]:
    """By kernel, then by arm: what the first seed gained; kernels that have both arms, the best first."""
    found: dict[str, dict[str, Gain]] = {}
    for job in jobs:
        if job["arm"] in ARMS and job["seed"] == 0:
            found.setdefault(job["kernel"], {})[job["arm"]] = gain_of(job)
    both = {kernel: arms for kernel, arms in found.items() if len(arms) == len(ARMS)}
    return dict(sorted(both.items(), key=lambda row: -row[1]["template"].estimate))


def picture(rows: Mapping[str, Mapping[str, Gain]], theme: Mapping[str, str], device: str) -> str:
    """The SVG: a row per kernel, a dot per arm with its interval, on a logarithmic axis of speed-ups."""
    top = max(gain.high for arms in rows.values() for gain in arms.values())
    ticks = [t for t in (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32) if t <= top * 1.1]
    height = TOP + ROW * len(rows) + 34

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(max(value, 0.9) / 0.9) / math.log(top / 0.9)

    title = f"Speed-up over the kernel as posted, verified in pairs, 95 % intervals; {device}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{theme["ink"]}">',
        f"<title>{escape(title)}</title>",
        f'<text x="8" y="16">{escape(title)}</text>',
    ]
    for n, (arm, words) in enumerate(zip(ARMS, ("built-in rules", "model’s template + search"), strict=True)):
        parts.append(f'<circle cx="{LEFT + 140 * n}" cy="31" r="5" fill="{theme[arm]}"/>')
        parts.append(f'<text x="{LEFT + 140 * n + 10}" y="35">{words}</text>')
    for tick in ticks:
        parts.append(
            f'<path d="M{x(tick):.1f} {TOP}V{height - 26}" stroke="{theme["faint"]}"/>'
            f'<text x="{x(tick):.1f}" y="{height - 9}" text-anchor="middle">{tick:g}×</text>'
        )
    for n, (kernel, arms) in enumerate(rows.items()):
        y = TOP + ROW * n + ROW / 2
        kind, _, name = kernel.partition("_")
        label = escape(f"{PROJECTS.get(kernel) or PROJECTS[kind]} {name}")
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{label}</text>')
        for arm, shift in zip(ARMS, (-4, 4), strict=True):
            gain, colour = arms[arm], theme[arm]
            parts.append(
                f'<path d="M{x(gain.low):.1f} {y + shift}H{x(gain.high):.1f}" stroke="{colour}" '
                f'stroke-width="3"/>'
                f'<circle cx="{x(gain.estimate):.1f}" cy="{y + shift}" r="5" fill="{colour}"/>'
            )
        best = arms["template"]
        figure = f"{best.estimate:.2f}× [{best.low:.2f}, {best.high:.2f}]"
        parts.append(f'<text x="{WIDTH - 8}" y="{y + 4}" text-anchor="end">{figure}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the pictures")
    folder = parser.parse_args().out
    jobs = json.loads(RECORD.read_text())["jobs"]
    folder.mkdir(exist_ok=True)
    for name, theme in THEMES.items():
        (folder / f"gains-{name}.svg").write_text(picture(gains(jobs), theme, jobs[0]["device"]))


if __name__ == "__main__":
    main()
