"""Replies as models really write them, and as an enemy would."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contracts import PlannerReply, TemplateReply
from agents.parsing import MAX_REPLY_CHARACTERS, BadReply, find_object, parse_reply
from testbed.deadlines import stretched
from testbed.repetitions import examples

GOOD = {
    "alone": '{"plan": "x"}',
    "trailing comma": '{"plan": "x",}',
    "trailing comma in a list": '{"plan": "x", "a": [1, 2, ], }',
    "fence": 'Sure!\n```json\n{"plan": "x"}\n```\nHope that helps.',
    "fence without a language": '```\n{"plan": "x"}\n```',
    "fence never closed": '```json\n{"plan": "x"}',
    "prose around": 'Here you are: {"plan": "x"} as asked.',
    "braces in prose": 'A set {a, b}, an empty one {}, and {"plan": "x"}.',
    "thoughts first": '<think>{"plan": "no"}</think>{"plan": "x"}',
    "byte order mark": '\ufeff{"plan": "x"}',
    "windows lines": '```json\r\n{"plan": "x"}\r\n```',
}


@pytest.mark.parametrize("name", GOOD)
def test_the_object_is_found_whatever_stands_around_it(name: str) -> None:
    assert find_object(GOOD[name])["plan"] == "x"


@pytest.mark.parametrize(
    "text",
    ['{"plan": "a fence: ```c\\nx\\n``` inside"}', '{"plan": "a, }"}', '{"plan": "{\\"plan\\": 1}"}'],
)
def test_texts_inside_the_object_stay_as_they_are(text: str) -> None:
    assert find_object(text) == json.loads(text)


BAD = {
    "": "the reply is empty",
    "I cannot do that.": "holds no JSON object",
    "[1, 2]": "holds no JSON object",
    "{'plan': 'x'}": "holds no JSON object",
    '{"plan": "x': "ends before its JSON does",
    '{"parameters": [{"name": "A"}], "source": "abc': "ends before its JSON does",
    '{"plan": "x", "expected_gain": NaN}': "NaN or an infinity",
    '{"plan": "\\ud800"}': "not valid Unicode",
    '{"plan": "\\u0000"}': "NUL character",
    '{"expected_gain": ' + "9" * 5000 + "}": "a number too long",
    '{"a":' * 5000 + "1" + "}" * 5000: "nested too deeply",
    '{"plan": 3, "foo": 1}': "plan: Input should be a valid string; foo: no such field",
    '{"plan": "x", "expected_gain": -1}': "expected_gain: Input should be greater than or equal to 0",
    "x" * (MAX_REPLY_CHARACTERS + 1): "at most 1048576",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{i}" for i in range(len(BAD))])
def test_a_bad_reply_is_told_precisely_what_is_wrong(text: str) -> None:
    with pytest.raises(BadReply) as caught:
        parse_reply(text, PlannerReply)
    assert BAD[text] in str(caught.value)


def test_many_problems_are_counted_and_not_all_told() -> None:
    text = json.dumps({f"field{n}": n for n in range(100)})
    with pytest.raises(BadReply, match="and 94 more") as caught:
        parse_reply(text, TemplateReply)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "piece", ['\\"', '{"', '{"a":{', "<think>", "```\n", "``` ", ", ", '{"a":1,', "{ "], ids=repr
)
def test_no_reply_takes_long_to_read(piece: str) -> None:
    text = (piece * MAX_REPLY_CHARACTERS)[:MAX_REPLY_CHARACTERS]
    started = time.process_time()
    with pytest.raises(BadReply):
        parse_reply(text, PlannerReply)
    assert time.process_time() - started < stretched(5)


@examples(150)
@given(st.text(alphabet='{}[]",:\\`\n \tabc0<>/', max_size=80))
def test_nothing_but_a_bad_reply_is_ever_raised(text: str) -> None:
    try:
        assert isinstance(find_object(text), dict)
    except BadReply as exc:
        assert str(exc)
