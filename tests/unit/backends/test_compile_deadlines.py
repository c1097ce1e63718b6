"""Deadlines of compilations that follow those before them."""

from warpsmith.sandbox.hosts.compile_deadlines import ENOUGH, LEAST_S, RATIO, TEMPLATES, CompileDeadlines


def told(*seconds: float, most_s: float = 60.0) -> CompileDeadlines:
    patience = CompileDeadlines(most_s)
    for took in seconds:
        patience.took("a", took)
    return patience


def test_nothing_is_known_at_first() -> None:
    assert told(*[0.5] * (ENOUGH - 1)).limit_s("a") == 60.0


def test_quick_compilations_shorten_the_deadline_to_the_least() -> None:
    assert told(*[0.1] * ENOUGH).limit_s("a") == LEAST_S


def test_it_is_a_multiple_of_what_is_usual() -> None:
    patience = told(0.5, 1.0, 1.0, 50.0)
    assert patience.limit_s("a") == RATIO * 1.0
    assert patience.limit_s("b") == 60.0, "another template is not judged by it"


def test_it_is_never_longer_than_the_pools() -> None:
    assert told(*[5.0] * ENOUGH).limit_s("a") == 60.0
    assert told(*[0.1] * ENOUGH, most_s=4.0).limit_s("a") == 4.0


def test_it_forgets_the_oldest_templates() -> None:
    patience = told(*[0.1] * ENOUGH)
    for n in range(TEMPLATES):
        patience.took(f"other {n}", 1.0)
    assert patience.limit_s("a") == 60.0
