"""A convergence plot as SVG, without a plotting library."""

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 220, 30, 50
FIRST = 10
"""Evaluations left out at the start, where every method is still drawing first points."""
HIGHEST = 1.6
TICKS = (1.0, 1.02, 1.05, 1.1, 1.2, 1.4, 1.6)
COLOURS = ("#c1272d", "#e8a0a0", "#777777", "#0072b2", "#009e73", "#d55e00", "#cc79a7")


def svg(curves: Mapping[str, Sequence[float]], title: str) -> str:
    """Ratio to the optimum over evaluations, one line a method; the first is drawn thicker."""
    length = max(len(c) for c in curves.values())

    def x(evaluation: float) -> float:
        return LEFT + (evaluation - FIRST) / (length - FIRST) * (WIDTH - LEFT - RIGHT)

    def y(ratio: float) -> float:
        # The logarithm of the distance to the optimum, so that the last per cent stays visible.
        scaled = math.log(max(ratio, 1.0) - 1.0 + 0.01)
        low, high = math.log(0.01), math.log(HIGHEST - 1.0 + 0.01)
        return HEIGHT - BOTTOM - min((scaled - low) / (high - low), 1.0) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="13">{title}</text>',
    ]
    for tick in TICKS:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    for tick in (25, 50, 100, 150, 200):
        parts.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 12}" text-anchor="middle">evaluations</text>')
    for number, (name, curve) in enumerate(curves.items()):
        points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in enumerate(curve, 1) if n >= FIRST)
        colour = COLOURS[number % len(COLOURS)]
        key = TOP + 16 + 20 * number
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="{2.5 if number == 0 else 1.5}"/>'
            f'<line x1="{WIDTH - RIGHT + 12}" x2="{WIDTH - RIGHT + 34}" y1="{key}" y2="{key}" '
            f'stroke="{colour}" stroke-width="2.5"/>'
            f'<text x="{WIDTH - RIGHT + 40}" y="{key + 4}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
