"""Declined rules: their words, and what is read back of words that older versions wrote."""

import pytest

from warpsmith.domain.declined_rule import DeclineCode, DeclinedRule, not_permitted

RULE = DeclinedRule(rule="unroll", code=DeclineCode.FORM, reason="no loop: none", launch="launch 0 (k)")


def test_a_declined_rule_is_stored_whole() -> None:
    stored = RULE.model_dump(mode="json")
    assert stored == {"rule": "unroll", "code": "form", "reason": "no loop: none", "launch": "launch 0 (k)"}
    assert DeclinedRule.model_validate(stored) == RULE


@pytest.mark.parametrize("rule", [RULE, not_permitted("restrict")])
def test_words_of_older_versions_give_rule_launch_and_reason(rule: DeclinedRule) -> None:
    read = DeclinedRule.model_validate(str(rule))
    assert str(read) == str(rule)
    assert (read.rule, read.launch, read.reason) == (rule.rule, rule.launch, rule.reason)


def test_words_of_older_versions_tell_what_the_job_forbade() -> None:
    assert DeclinedRule.model_validate(str(not_permitted("restrict"))) == not_permitted("restrict")
    assert DeclinedRule.model_validate(str(RULE)).code is DeclineCode.UNRECORDED


@pytest.mark.parametrize("words", ["", "no colon", "launch 1 (k: odd", "unroll: launch 1 (k)", "a: \nb: c"])
def test_words_of_any_form_stay_as_they_were(words: str) -> None:
    assert str(DeclinedRule.model_validate(words)) == words
