"""The comparison as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.search.compare import LEFT_OUT, OURS
from benchmarks.search.metrics import BUDGETS

AT = " / ".join(str(b) for b in BUDGETS)


def ratios(values: Sequence[float]) -> str:
    """Ratios to the optimum, side by side."""
    return " / ".join(f"{v:.3f}" for v in values)


def shares(values: Sequence[float]) -> str:
    """Shares in per cent, side by side."""
    return " / ".join(f"{100 * v:.0f}" for v in values)


def overall(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One row a method."""
    lines = [
        f"| search | ratio at {AT} "
        "| within 5 %, % of runs | score | ours minus this [95 %] | ms per evaluation |",
        "|---|---|---|---|---|---|",
    ]
    for method, f in figures.items():
        gap = f.get("ours_minus_this")
        difference = f"{gap['mean']:.3f} [{gap['low']:.3f}, {gap['high']:.3f}]" if gap else "-"
        lines.append(
            f"| {method} | {ratios(f['ratio'])} | {shares(f['within'])} | {f['score']:.3f} "
            f"| {difference} | {f['ms_per_evaluation']:.2f} |"
        )
    return lines


def per_space(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One row a space: ours, and the best peer at 100 evaluations."""
    lines = [
        f"| space | ours: ratio at {AT} | ours: within 5 % | best peer at 100: within 5 % | which |",
        "|---|---|---|---|---|",
    ]
    at = BUDGETS.index(100)
    peers = [m for m in figures if m not in (OURS, LEFT_OUT)]
    for name, ours in figures[OURS]["by_space"].items():
        best = max(peers, key=lambda m: figures[m]["by_space"][name]["within"][at], default=None)
        share = shares(figures[best]["by_space"][name]["within"]) if best else "-"
        lines.append(
            f"| {name} | {ratios(ours['ratio'])} | {shares(ours['within'])} | {share} | {best or '-'} |"
        )
    return lines
