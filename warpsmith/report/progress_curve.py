"""Best result so far over the trials, as an inline SVG."""

import itertools
from collections.abc import Sequence

from warpsmith.domain.templates.outcome import Measured
from warpsmith.http_models import TrialView

WIDTH, HEIGHT, MARGIN = 720, 220, 44
MANY = 2000
"""Number of dots above which those that would hide each other are left out."""


def progress_svg(trials: Sequence[TrialView], verified: float | None = None) -> str:
    """The SVG: a dot per trial at its speed-up over the baseline, and a line for the best so far; empty
    without data.

    Args:
        verified: verified speed-up over the verified baseline, ringed at the right end; None: no ring.
    """
    points = [(t.number, 1.0 / t.outcome.objective) for t in trials if isinstance(t.outcome, Measured)]
    if len(points) < 2:
        return ""
    last = max(number for number, _ in points)
    top = max(1.05, verified or 0.0, *(value for _, value in points)) * 1.05

    def x(number: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * number / max(1, last)

    def y(value: float) -> float:
        return HEIGHT - MARGIN - (HEIGHT - 1.5 * MARGIN) * value / top

    digits = 1 if len(points) <= MANY else 0
    places = dict.fromkeys((f"{x(n):.{digits}f}", f"{y(v):.{digits}f}") for n, v in points)
    dots = "".join(f'<circle cx="{left}" cy="{down}" r="2.5"/>' for left, down in places)
    (first, value), *higher = _records(points)
    path = f"M{x(first):.1f},{y(value):.1f} V{y(value):.1f} "
    path += "".join(f"H{x(number):.1f} V{y(value):.1f} " for number, value in higher) + f"H{x(last):.1f}"
    mark = "" if verified is None else _mark(x(last), y(verified), verified)
    ticks = "".join(
        f'<line class="grid" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
        f'<text x="{MARGIN - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.2g}x</text>'
        for v in (top * i / 4 for i in range(5))
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="best speed-up so far over the trials">'
        f'{ticks}<line class="one" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y(1):.1f}" y2="{y(1):.1f}"/>'
        f'<g class="dots">{dots}</g><path class="best" d="{path}"/>{mark}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">trial</text></svg>'
    )


def _records(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Points that are higher than all before them, the first included."""
    highest = itertools.accumulate((value for _, value in points), max)
    return [p for p, least in zip(points, itertools.chain([0.0], highest), strict=False) if p[1] > least]


def _mark(x: float, y: float, verified: float) -> str:
    return (
        f'<circle class="verified" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        f'<text x="{x - 10:.1f}" y="{y + 14:.1f}" text-anchor="end">verified {verified:.2f}x</text>'
    )
