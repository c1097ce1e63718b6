"""Replies as models really write them, and as an enemy would."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contracts import CallsReply, PlannerReply, ProfilerReply, TemplateReply
from agents.parsing import MAX_REPLY_CHARACTERS, BadReply, find_object, parse_reply
from testbed.deadlines import stretched
from testbed.repetitions import examples
from warpsmith.job_files.filling_contracts import FillReply

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
    "{'plan': 'x'}": "line 1, column 2: Expecting a name in double quotes, found \"'plan'",
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


DRAFT = '{"bottleneck": "launch", "hypotheses": []}'
MEMORY = '{"bottleneck": "memory", "hypotheses": ["use wider loads"]}'
CLOSED = {
    "pair": f"<think>{DRAFT}</think>{MEMORY}",
    "closing tag only": f"maybe {DRAFT} hmm, no\n</think>\n{MEMORY}",
    "two blocks": f"<think>{DRAFT}</think> {DRAFT} <think>{DRAFT}</think>\n{MEMORY}",
    "Mistral": f"[THINK]{DRAFT}[/THINK]{MEMORY}",
    "upper case": f"<THINK>{DRAFT}</THINK>{MEMORY}",
    "thought": f"<thought>{DRAFT}</thought>{MEMORY}",
    "thinking": f"<thinking>{DRAFT}</thinking>{MEMORY}",
    "reasoning": f"<reasoning>{DRAFT}</reasoning>{MEMORY}",
    "seed": f"<seed:think>{DRAFT}</seed:think>{MEMORY}",
    "attribute": f'<think time="3">{DRAFT}</think>{MEMORY}',
    "channels": f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{MEMORY}",
    "channel with a form": f"{DRAFT}<|channel|>final <|constrain|>json<|message|>{MEMORY}<|return|>",
    "channels without marks": f"analysisWe try {DRAFT}.assistantfinal{MEMORY}",
    "Kimi": f"\u25c1think\u25b7{DRAFT}\u25c1/think\u25b7{MEMORY}",
    "OpenThinker": f"<|begin_of_thought|>{DRAFT}<|end_of_thought|>{MEMORY}",
    "prose before": f"Sure, let me see. <think>{DRAFT}</think> Here: {MEMORY}",
    "broken draft": f'<think>{{"bottleneck": "launch, hmm</think>{MEMORY}',
    "unclosed draft without a tag": f'hm {{"a": no,\n</think>{MEMORY}',
    "fenced draft": f"```json\n{DRAFT}\n</think>\n```json\n{MEMORY}\n```",
    "a tag that is quoted": f"<think>I close with `</think>`. {DRAFT}</think>{MEMORY} after `</think>`",
    "form first": f'The form is {{"bottleneck": "...", "hypotheses": ["..."]}}. My answer:\n{MEMORY}',
    "form last": f'{MEMORY}\nas {{"bottleneck": "...", "hypotheses": ["..."]}} says',
    "broken form last": f'{MEMORY}\nas {{"bottleneck": ...}} says',
    "two fences": f"```json\n{DRAFT}\n```\nNo:\n```json\n{MEMORY}\n```",
    "a brace that never ends": f'a set {{"x", "y" and\n{MEMORY}',
    "another object last": f'{MEMORY} {{"note": 1}}',
    "many drafts": f"{DRAFT}\n" * 500 + MEMORY,
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_draft_is_no_answer(name: str) -> None:
    assert parse_reply(CLOSED[name], ProfilerReply).bottleneck == "memory"


@pytest.mark.parametrize(
    "source",
    ["// </think>", "</think>", "<think>", "[/THINK] x", "a\n</think>\nb", "<|channel|>final<|message|>"],
)
@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "<think>hm</think>{}", "{}\nDone."])
def test_a_tag_in_a_string_ends_no_thought(source: str, form: str) -> None:
    answer = json.dumps({"source": source, "reasoning": "x"})
    assert parse_reply(form.replace("{}", answer), TemplateReply).source == source
    raw = answer.replace("\\n", "\n")
    assert parse_reply(form.replace("{}", raw), TemplateReply).source == source


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{DRAFT}",
        f"[THINK]{DRAFT}",
        f"Well. <THINK> {DRAFT} hmm",
        f"<|channel|>analysis<|message|>{DRAFT}",
        f"<think>a</think>{DRAFT}<think>no",
    ],
)
def test_thoughts_without_end_hold_no_answer(text: str) -> None:
    with pytest.raises(BadReply, match="ends within its thoughts"):
        parse_reply(text, ProfilerReply)


def test_nothing_after_the_thoughts_is_no_answer() -> None:
    with pytest.raises(BadReply, match="nothing follows the thoughts"):
        parse_reply(f"<think>{DRAFT}</think>\n", ProfilerReply)
    with pytest.raises(BadReply, match="holds no JSON object"):
        parse_reply(f"{DRAFT}</think> I cannot.", ProfilerReply)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\r"], ids=repr)
def test_a_line_may_end_in_a_string(end: str) -> None:
    source = f"__kernel void scale(__global float* x) {{{end}  x[get_global_id(0)] *= 2.0f;{end}}}"
    text = '{"rules":[],"source":"' + source + '","reasoning":"one line"}'
    assert parse_reply(text, TemplateReply).source == source
    assert parse_reply(text[:-1] + ",}", TemplateReply).source == source


PLACES = {
    '{"bottleneck":"don\\\'t spill; pattern \\w+","hypotheses":[]}': r"line 1, column 19: invalid escape \'",
    '{\n"stop": "",\n"plan": "a \\w"}': r"line 3, column 12: invalid escape \w in a string; write \\w",
    '{"plan": "\\033"}': r"invalid escape \0 in a string",
    '{"plan": "\\x41"}': r"invalid escape \x in a string",
    '{"plan": "a \\\nb"}': "line 1, column 13: invalid escape",
    '{"plan": "\\u12"}': r"invalid escape \u in a string",
    '{"plan": "// </think> \\w"}': r"invalid escape \w",
    '{"stop": "x", // why\n"plan": "y"}': "line 1, column 15: Expecting property name",
    '{ // why\n"plan": "y"}': "line 1, column 2: Expecting a name in double quotes, found ' // why",
    "{'plan': 'y'}": "line 1, column 2: ",
    "{\u201cplan\u201d: \u201cy\u201d}": "line 1, column 2: ",
    "{\"plan\": 'y'}": "line 1, column 10: Expecting value, found \"'y'}\"",
    '{"plan": None}': "line 1, column 10: Expecting value, found 'None}'",
    '{"plan": "x", "expected_gain": +1.5}': "line 1, column 32: Expecting value, found '+1.5}'",
    '{"plan": "x", ...}': "line 1, column 15: ",
    "{plan: 3}": "line 1, column 2: ",
    '{"plan": "say "hi" now"}': "line 1, column 16: Expecting ',' delimiter, found",
    '{"plan": "draft"}\nNo:\n{"plan": "y \\w"}': "line 3, column 13: invalid escape",
    '{"plan": "draft"}\nNo:\n{"plan": "y': "ends before its JSON does",
    "<!doctype html><style>p { color: red }</style><p>503": "is an HTML page",
    '<html><script>x = {"a": 1</script></html>': "is an HTML page",
    '<?xml version="1.0"?><html>502 Bad Gateway': "is an HTML page",
    '{"calls": [{"tool": "compile\\w", "template": {"rules": ["x"]}}]}': r"invalid escape \w",
    '{"calls": [{"tool": "compile, "template": {"rules": ["x"]}}]}': "line 1, column ",
    '{"calls": [{"tool": "compile", "template": {"rules": ["x"]}}': "ends before its JSON does",
}


@pytest.mark.parametrize("text", PLACES, ids=[f"{i}" for i in range(len(PLACES))])
def test_the_place_and_the_rule_are_told(text: str) -> None:
    with pytest.raises(BadReply) as caught:
        parse_reply(text, *([TemplateReply, CallsReply] if "calls" in text else [PlannerReply]))
    assert PLACES[text] in str(caught.value)


@pytest.mark.parametrize(
    "piece",
    [
        '\\"',
        '{"',
        '{"a":{',
        "<think>",
        "```\n",
        "``` ",
        ", ",
        '{"a":1,',
        "{ ",
        "{}",
        "</think>",
        "\n{",
        '\n{"a" ',
        "~~~\n",
        "~~~a\n",
        "~~~a\n</think>\n",
        "```c\n/*\n",
        "```c\nx\n```\n",
        '```\n{"\n',
        "<|channel|>",
    ],
    ids=repr,
)
@pytest.mark.parametrize("model", [PlannerReply, TemplateReply])
def test_no_reply_takes_long_to_read(piece: str, model: type[PlannerReply | TemplateReply]) -> None:
    text = (piece * MAX_REPLY_CHARACTERS)[:MAX_REPLY_CHARACTERS]
    started = time.process_time()
    with contextlib.suppress(BadReply):
        parse_reply(text, model)
    assert time.process_time() - started < stretched(5)


@examples(150)
@given(st.text(alphabet='{}[]",:\\`\n \tabc0<>/', max_size=80))
def test_nothing_but_a_bad_reply_is_ever_raised(text: str) -> None:
    try:
        assert isinstance(find_object(text), dict)
    except BadReply as exc:
        assert str(exc)


CODE = "__kernel void k(__global float* x) {\n  if (x[0] > 0) { x[1] = 2.0f; }\n}\n"
REST = '{"parameters": [], "grid": ["n"], "reasoning": "y"}'
FENCED = {
    "source first": f"Here:\n```opencl\n{CODE}```\n\n```json\n{REST}\n```\nDone.",
    "source last": f"```json\n{REST}\n```\n```c\n{CODE}```",
    "bare object": f"```\n{CODE}```\n{REST}",
    "bare object on a line of prose": f"```\n{CODE}```\nThe rest: {REST}",
    "windows lines": f"```opencl\n{CODE}```\n```json\n{REST}\n```\n".replace("\n", "\r\n"),
    "indented": "1. Source:\n" + "".join(f"   {line}\n" for line in f"```c\n{CODE}```".split("\n")) + REST,
    "tilde": f"~~~c\n{CODE}~~~\n{REST}",
    "longer": f"`````c++\n{CODE}`````\n{REST}",
    "closed by a longer one": f"```c\n{CODE}````\n{REST}",
    "blanks behind the fences": f"```c  \n{CODE}```  \n```json \n{REST}\n``` \n",
    "json not closed": f"```c\n{CODE}```\n```json\n{REST}",
    "source not closed before the json": f"```c\n{CODE}```json\n{REST}\n```",
    "all of it in a fence": f"```markdown\n```c\n{CODE}```\n```json\n{REST}\n```\n```",
    "named by info": f"```c title=source\n{CODE}```\n```c\n{CODE}{CODE}```\n{REST}",
    "named by the line before": f"Before:\n```c\n{CODE}{CODE}```\n**Source:**\n\n```c\n{CODE}```\n{REST}",
    "the largest": f"```\nint x;\n```\n```c\n{CODE}```\n```sh\nmake\n```\n{REST}",
    "a draft in thoughts": f"<think>\n```c\n{CODE}{CODE}```\n{DRAFT}</think>\n```c\n{CODE}```\n{REST}",
    "a draft without a tag": f"```c\n{CODE}{CODE}```\n</think>\n```c\n{CODE}```\n{REST}",
    "a draft without an end": f"```c\n{CODE}{CODE}\n</think>\n```c\n{CODE}```\n{REST}",
    "an empty source": f'```c\n{CODE}```\n{{"source": "", "grid": ["n"]}}',
    "byte order mark": f"\ufeff```c\n{CODE}```\n{REST}",
    "a fence too many": f"```c\n{CODE}```\n```json\n{REST}\n```\n```\n",
}


@pytest.mark.parametrize("name", FENCED)
def test_a_source_may_stand_in_a_fence(name: str) -> None:
    answer: object = parse_reply(FENCED[name], TemplateReply, CallsReply)
    assert isinstance(answer, TemplateReply)
    assert (answer.source, answer.grid) == (CODE, ("n",))


@pytest.mark.parametrize(
    "line",
    [
        *("// ```", "/* use:\n```\nx\n```\n*/", "/* ```\n*/", "//**** a ****", "~~~", "a = b /*c", "    ```"),
        *("// </think>", "</think>", "<think>", "// {", '// {"grid": ["m"]}', "// ```json"),
    ],
)
def test_a_fenced_source_stays_as_it_is(line: str) -> None:
    source = f"{CODE}{line}\n{CODE}"
    for text in (f"```c\n{source}```\n{REST}", f"<think>hm</think>{REST}\n```c\n{source}```"):
        assert parse_reply(text, TemplateReply).source == source


def test_a_block_alone_is_a_source_and_the_text_in_json_wins() -> None:
    assert parse_reply(f"Sets {{a, b}}:\n```c\n{CODE}```", TemplateReply).source == CODE
    assert parse_reply('```c\nint x;\n```\n{"source": "int y;"}', TemplateReply).source == "int y;"
    assert parse_reply('as in\n```c\nint x;\n```\n{"draft": "d1"}', TemplateReply).source == ""


@pytest.mark.parametrize("model", [PlannerReply, ProfilerReply])
def test_a_fence_is_prose_where_no_field_is_marked(model: type[PlannerReply | ProfilerReply]) -> None:
    text = f"```\nthis: {DRAFT if model is ProfilerReply else GOOD['alone']}\n```"
    assert isinstance(parse_reply(text, model), model)


FENCED_BAD = {
    f"{REST}\n```c\n{CODE}": "the reply ends within its fenced source",
    f"```c\n{CODE}\n\n{REST}": "the reply ends within its fenced source",
    f"```c\n{CODE}```\n```json\n{REST[:-20]}": "ends before its JSON does",
    f"```c\n{CODE}```\n{{'grid': ['n']}}": "Expecting a name in double quotes",
    f"```c\n{CODE}```\n```json\n{{'grid': ['n']}}\n```": "Expecting a name in double quotes",
    f'```c\n{CODE}```\n{{"gird": ["n"]}}': "gird: no such field",
    f"<think>\n```c\n{CODE}```": "ends within its thoughts",
}


@pytest.mark.parametrize("text", FENCED_BAD, ids=[f"{i}" for i in range(len(FENCED_BAD))])
def test_a_bad_fence_is_told(text: str) -> None:
    with pytest.raises(BadReply) as caught:
        parse_reply(text, TemplateReply, CallsReply)
    assert FENCED_BAD[text] in str(caught.value)


def test_the_sources_of_calls_may_be_fenced_in_their_order() -> None:
    call = '{"tool": "compile", "template": {"grid": ["n"]}}'
    text = f'```c\nint a;\n```\n```c\nint b;\n```\n{{"calls": [{call}, {{"tool": "history"}}, {call}]}}'
    answer: object = parse_reply(text, TemplateReply, CallsReply)
    assert isinstance(answer, CallsReply)
    templates = [c.template for c in answer.calls]
    assert [t and t.source for t in templates] == ["int a;\n", None, "int b;\n"]
    with pytest.raises(BadReply, match="2 objects leave source out, and 1 fenced blocks"):
        parse_reply(text.replace("```c\nint b;\n```\n", ""), TemplateReply, CallsReply)


def test_the_reference_of_a_job_file_may_be_fenced() -> None:
    sizes = '{"workloads": [{"n": 4}], "small": [{"n": 2}, {"n": 3}]}'
    reference = "def reference(inputs, dims):\n    return {}\n"
    assert parse_reply(f"```python\n{reference}```\n{sizes}", FillReply).reference == reference
