"""Successive halving: how a budget is divided among arms of which the better half goes on. Pure.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", 2016. What a
arm has had in all doubles from rung to rung: 1 part on the first rung, 1 more on the next, then 2, 4.
"""


def half(arms: int) -> int:
    """Number of arms that go on to the next rung; at least one."""
    return max(1, arms // 2)


def weight(rung: int) -> int:
    """Parts of the budget that an arm gets on a rung; the first rung is 0."""
    return 1 if rung == 0 else 1 << (rung - 1)


def parts(arms: int, rung: int = 0, waiting: int | None = None) -> int:
    """Parts that are still to be given away, the last of them to the winner alone.

    Args:
        arms: number of arms on the rung.
        waiting: number of them that have not run on it; None: all.
    """
    total = (arms if waiting is None else waiting) * weight(rung)
    while arms > 1:
        arms, rung = half(arms), rung + 1
        total += arms * weight(rung)
    return total
