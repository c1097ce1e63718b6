"""The registered rewrite rules, in the order in which they compose."""

from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule
from warpsmith.registry import Kind, load_all

RULES: tuple[Rule, ...] = tuple(rule() for rule in load_all(Kind.RULE))
"""Rules that rewrite bodies and launches."""

LAST_RULES: tuple[Rule, ...] = tuple(rule() for rule in load_all(Kind.LAST_RULE))
"""Rules that are applied after all bodies of the kernel stand in its source."""

ALL_RULES: tuple[Rule, ...] = (*RULES, *LAST_RULES)
"""All of them, in the order in which they are applied."""

__all__ = ["ALL_RULES", "LAST_RULES", "RULES", "Declined", "Draft", "Rule"]
