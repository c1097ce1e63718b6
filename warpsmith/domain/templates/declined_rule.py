"""Rewrite rules that were not applied, and why."""

from enum import StrEnum

from warpsmith.domain.base import Frozen


class DeclineCode(StrEnum):
    """Kinds of reasons why a rewrite rule was not applied."""

    NOT_PERMITTED = "not_permitted"
    """The job does not allow the rule."""
    BACK_END = "back_end"
    """The rule is not for the kernel's language."""
    UNREADABLE = "unreadable"
    """Facts that the rule needs are not in the source, or not in words that the rule reads."""
    FORM = "form"
    """The source has not the form for which the rule has a rewrite and a proof."""
    LAUNCH = "launch"
    """The job's launch or arguments have not the form that the rule needs."""
    DEPENDENCE = "dependence"
    """Threads, iterations or accesses depend on each other, or may."""
    RELIED_ON = "relied_on"
    """The kernel or the check of its results may rely on what the rule would change."""
    ANOTHER_LAUNCH = "another_launch"
    """The rewrite would change what another launch of the sequence runs."""
    NAME_TAKEN = "name_taken"
    """A name that the rule would introduce is taken."""
    NO_GAIN = "no_gain"
    """Nothing is left to choose or to save, for instance because the kernel is written that way already."""
    LIMIT = "limit"
    """The analysis or the rewrite would exceed a limit of this program."""
    FAILED = "failed"
    """A template of the job failed by the rule before."""


class DeclinedRule(Frozen):
    """A rule that was not applied, as evidence in the result. Its text is one line for people."""

    rule: str
    """The rule's name; `every rule` if the reason holds for all."""
    code: DeclineCode
    reason: str
    """In words."""
    launch: str = ""
    """Launch of a sequence to which the rule was not applied; empty without a sequence."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.rule, self.launch, self.reason) if part)


EVERY_RULE = "every rule"
"""In place of a name, if a reason holds for all rules."""


def not_permitted(rule: str) -> DeclinedRule:
    """The refusal of a rule that the job does not allow."""
    return DeclinedRule(rule=rule, code=DeclineCode.NOT_PERMITTED, reason="not permitted by the job")
