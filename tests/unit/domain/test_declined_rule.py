"""Declined rules: how they are stored."""

from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule

RULE = DeclinedRule(rule="unroll", code=DeclineCode.FORM, reason="no loop: none", launch="launch 0 (k)")


def test_a_declined_rule_is_stored_whole() -> None:
    stored = RULE.model_dump(mode="json")
    assert stored == {"rule": "unroll", "code": "form", "reason": "no loop: none", "launch": "launch 0 (k)"}
    assert DeclinedRule.model_validate(stored) == RULE
