"""Successive halving: how a budget is divided among contestants of which the better half goes on. Pure.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", 2016. What a
contestant has had in all doubles from rung to rung: 1 part for its heat, 1 more on the next rung, then 2, 4.
"""


def half(contestants: int) -> int:
    """Number of contestants that go on to the next rung; at least one."""
    return max(1, contestants // 2)


def weight(rung: int) -> int:
    """Parts of the budget that a contestant gets on a rung; the heats are rung 0."""
    return 1 if rung == 0 else 1 << (rung - 1)


def parts(contestants: int, rung: int = 0, waiting: int | None = None) -> int:
    """Parts that are still to be given away, the last of them to the winner alone.

    Args:
        contestants: number of contestants on the rung.
        waiting: number of them that have not run on it; None: all.
    """
    total = (contestants if waiting is None else waiting) * weight(rung)
    while contestants > 1:
        contestants, rung = half(contestants), rung + 1
        total += contestants * weight(rung)
    return total
