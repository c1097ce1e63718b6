"""Guides: whole heads, short pages, found by what a kernel is like, read by name only, and off by default."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.context import StepContext
from agents.parsing import BadReply
from agents.providers.external import ask
from agents.questions.functions import functions
from agents.questions.guide_finding import MOST_FOUND, features_of, guides_for
from agents.questions.guide_pages import FOLDER, MOST_LINES, NO_RECORD, guides, parse
from agents.questions.prompting import version
from agents.questions.role_inputs import question
from agents.replies.reply_acceptance import accept
from testbed.example_jobs import load_example
from tests.agents.conftest import Make
from tests.agents.guided_kernels import KERNELS, guided_job
from tests.agents.model_server import Turn as Reply
from tests.agents.model_server import in_order, model_server
from tests.agents.replies import as_text, template
from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import AgentPolicy, Job
from warpsmith.domain.templates.outcome import TimeSummary, WorkloadTiming
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.step_facts import AgentTurn
from warpsmith.tuning.tasks import BaselineResult, StepPayload, ToolAnswer

ROOT = Path(__file__).resolve().parents[2]
PAYLOAD = StepPayload(role="templater", round=1, tools=3)
GUIDED = AgentPolicy(tools=3, guides=True)
GPU = DEVICE.model_copy(update={"shares_host": False})
CPU = DEVICE.model_copy(update={"shares_host": True})


def on(job: Job, device: Any = GPU) -> StepContext:
    """The context of a job that wants guides."""
    return StepContext(job=job.model_copy(update={"agents": GUIDED}), baseline=BaselineResult(device=device))


def names(context: StepContext) -> list[str]:
    """The guides that fit."""
    return [guide.name for guide in guides_for(context)]


@pytest.fixture
def guided(context: StepContext) -> StepContext:
    """The context of `scale_job` on a CPU, with guides."""
    return on(context.job, CPU)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda p: p.stem)
def test_every_page_is_short_and_has_a_whole_head(path: Path) -> None:
    text = path.read_text()
    guide = parse(text, path.stem)
    assert len(text.splitlines()) <= MOST_LINES
    assert max(len(line) for line in guide.text.splitlines()) <= 135
    assert guide.record == NO_RECORD or (ROOT / guide.record).exists()
    assert guide.record in guide.line and guide.record in guide.page
    assert guide.sources in guide.page


def test_every_feature_is_in_some_head_and_every_form_has_its_guide() -> None:
    assert set(guides()) == {
        *("rows", "quantisation", "gathers", "transposes", "stencils", "matrix_products", "launch_bound"),
        "cpu_opencl",
    }
    assert guides()["cpu_opencl"].devices == ("cpu",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("record: none yet\n", ""), "guide rows: record: Field required"),
        (("devices: gpu", "devices: tpu"), "guide rows: devices.0"),
        (("rank: 5", "rank: first"), "guide rows: rank"),
        (("rank: 5", "rank"), "'rank' is no `field: value`"),
        (("features: row", "features: rows"), "guide rows: features.0"),
    ],
)
def test_a_head_with_a_fault_is_refused(change: tuple[str, str], words: str) -> None:
    text = (FOLDER / "rows.md").read_text()
    assert change[0] in text
    with pytest.raises(ValueError, match=words):
        parse(text.replace(*change), "rows")


@pytest.mark.parametrize("backend", ["cuda", "opencl"])
@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("fused_add_rmsnorm", ["rows"]),
        ("softmax", ["rows"]),
        ("silu_and_mul", ["rows"]),
        ("merge_attn_states", ["rows"]),
        ("split_row_sum", ["rows"]),
        ("matmul", ["matrix_products"]),
        ("stencil", ["stencils"]),
    ],
)
def test_the_examples_find_their_guides_on_a_gpu(family: str, backend: str, expected: list[str]) -> None:
    assert names(on(load_example(family, backend))) == expected


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_each_form_find_their_guides_and_no_others(name: str) -> None:
    assert names(on(guided_job(name))) == KERNELS[name].guides


@pytest.mark.parametrize("name", ["tiled_transpose", "gemv", "add"])
def test_on_a_cpu_the_page_on_cpus_is_found(name: str) -> None:
    assert names(on(guided_job(name), CPU)) == ["cpu_opencl"]
    assert names(on(load_example("softmax", "cuda"), CPU)) == []


def test_a_small_kernel_is_launch_bound() -> None:
    context = on(load_example("softmax", "opencl"))
    assert context.baseline is not None
    ceilings = Ceilings(cold_bytes_per_s=4e12, hot_bytes_per_s=4e12, flops_per_s=5e13, launch_us=20.0)
    time = TimeSummary(median_us=25.0, low_us=25.0, high_us=25.0, samples=9, launches_per_sample=1)
    timings = tuple(WorkloadTiming(workload=w.key, cold=time, hot=time) for w in context.job.workloads)
    baseline = context.baseline.model_copy(update={"ceilings": ceilings, "timings": timings})
    assert names(replace(context, baseline=baseline)) == ["rows", "launch_bound"]
    quick = ceilings.model_copy(update={"launch_us": 1e-6})
    slow = baseline.model_copy(update={"ceilings": quick})
    assert names(replace(context, baseline=slow)) == ["rows"]


def test_few_guides_are_listed_and_the_best_first() -> None:
    found = guides_for(on(guided_job("quantised_gather")))
    assert [g.name for g in found] == ["quantisation", "gathers", "rows"]
    assert len(found) <= MOST_FOUND
    assert [g.rank for g in found] == sorted(g.rank for g in found)


def test_a_source_that_cannot_be_read_has_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    job = load_example("softmax", "opencl")
    renamed = job.kernel.model_copy(update={"entry": "gone"})
    assert features_of(on(job.model_copy(update={"kernel": renamed}))) == {"any"}
    monkeypatch.setattr("warpsmith.extensions.rules.templater.STEPS", 100)
    assert features_of(on(job)) == {"any"}


def test_without_a_wish_for_guides_nothing_tells_of_them(context: StepContext) -> None:
    plain = replace(context, baseline=BaselineResult(device=CPU))
    asked = ask(PAYLOAD, question(PAYLOAD, plain))
    everything = json.dumps([asked.instructions, asked.question, asked.wanted, asked.version, functions()])
    assert "guide" not in everything and "topic" not in everything
    for call in ({"tool": "read_guide", "topic": "rows"}, {"tool": "history", "topic": "rows"}):
        with pytest.raises(BadReply, match=r"calls\.0\.(tool: must be one of compile|topic: no such field)"):
            accept(as_text({"calls": [call]}), "x", PAYLOAD, plain)


def test_a_conversation_without_tools_has_no_guides(guided: StepContext) -> None:
    asked = ask(
        StepPayload(role="templater", round=1), question(StepPayload(role="templater", round=1), guided)
    )
    assert "guide" not in json.dumps([asked.instructions, asked.question, asked.wanted, asked.version])


def test_the_question_lists_what_fits_and_its_record(guided: StepContext) -> None:
    asked = ask(PAYLOAD, question(PAYLOAD, guided))
    assert asked.question["guides"] == {"cpu_opencl": guides()["cpu_opencl"].line}
    assert asked.question["guides"]["cpu_opencl"].endswith("(recorded gain: none yet)")
    assert "`read_guide`" in asked.instructions
    assert asked.version.endswith(".guides-1") and ".tools-" in asked.version
    call = asked.wanted["$defs"]["CallText"]["properties"]
    assert "read_guide" in call["tool"]["enum"] and "topic" in call


def test_a_guide_is_read_without_a_device_and_counts_as_a_call(guided: StepContext) -> None:
    reply = as_text({"calls": [{"tool": "read_guide", "topic": "cpu_opencl"}, {"tool": "history"}]})
    found = accept(reply, "x", PAYLOAD, guided)
    first, _ = found.tool_calls
    assert first.answer is not None
    assert first.answer.ok and first.answer.text == guides()["cpu_opencl"].page
    assert "Recorded gain: none yet." in first.answer.text
    assert accept(reply, "x", PAYLOAD, guided) == found
    with pytest.raises(BadReply, match="1 tool calls are left"):
        accept(reply, "x", PAYLOAD.model_copy(update={"tools": 1}), guided)


@pytest.mark.parametrize(
    "topic", ["", "ROWS", "../prompts/tools", "rows.md", "/etc/passwd", "rows\0", "..", "__class__", "rows "]
)
def test_a_topic_is_a_name_and_no_path(topic: str, guided: StepContext) -> None:
    reply = as_text({"calls": [{"tool": "read_guide", "topic": topic}]})
    try:
        (call,) = accept(reply, "x", PAYLOAD, guided).tool_calls
    except BadReply:
        assert "\0" in topic
        return
    assert call.answer is not None and not call.answer.ok
    assert call.answer.text.startswith(f"topic: there is no {topic!r}; known: cpu_opencl, gathers")


def test_a_topic_of_any_length_is_refused(guided: StepContext) -> None:
    with pytest.raises(BadReply, match=r"calls\.0\.topic"):
        accept(as_text({"calls": [{"tool": "read_guide", "topic": "x" * 4000}]}), "x", PAYLOAD, guided)


def test_a_conversation_keeps_its_guides_when_its_calls_are_used_up(guided: StepContext) -> None:
    reply = as_text({"calls": [{"tool": "read_guide", "topic": "rows"}]})
    made = accept(reply, "x", PAYLOAD, guided).tool_calls
    turns = (AgentTurn(reply, made, [made[0].answer or ToolAnswer(text="")]),)
    last = PAYLOAD.model_copy(update={"turn": 1, "first_turn": "t", "tools": 0})
    later = question(last, replace(guided, turns=turns))
    assert later.model_dump()["guides"] == question(PAYLOAD, guided).model_dump()["guides"]
    assert version("templater", later).endswith(".guides-1")


def test_a_model_is_offered_the_function_only_if_there_are_guides(
    provider: Make, context: StepContext, guided: StepContext
) -> None:
    call = ("read_guide", json.dumps({"topic": "cpu_opencl"}))
    with model_server(in_order(Reply(calls=[call]))) as server:
        result = provider(server.url).answer(PAYLOAD, guided)
        (request,) = server.requests
    offered = {f["function"]["name"]: f["function"]["parameters"] for f in request["tools"]}
    assert set(offered["read_guide"]) == {"type", "properties", "additionalProperties"}
    assert result.tool_calls[0].answer == ToolAnswer(text=guides()["cpu_opencl"].page)
    with model_server(in_order(Reply(calls=[call]), Reply(as_text(template())))) as server:
        result = provider(server.url).answer(PAYLOAD, context)
    assert "there is no function 'read_guide'" in result.notes[0]
    assert "read_guide" not in json.dumps(server.requests[0])
