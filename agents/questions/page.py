"""A question as one Markdown page: facts in sentences and tables, then the kernel and its launch. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agents.contracts import CallInput, KernelInput, StepInput, TemplateInput, TrialInput
from warpsmith.tuning.analysis.search_facts import Facts, KernelFacts

_FENCED = ("log", "tried")


def data_page(question: StepInput) -> str:
    """The data of a question under the names of its fields, to which the instructions refer."""
    fields = dict(question)
    parts: list[str] = []
    for name, value in fields.items():
        if value in (None, "", (), {}) or name in ("round", "kernel") or (value == 0 and value is not False):
            continue
        if name == "baseline_us" and fields.get("facts") is not None:
            continue
        parts += [f"## `{name}`", _shown(name, value, question)]
    kernel = fields.get("kernel")
    parts = [f"Round {fields['round']}.", *parts] if "round" in fields else parts
    if isinstance(kernel, KernelInput):
        parts += ["## `kernel`", _kernel(kernel)]
    return "\n\n".join(part for part in parts if part)


def answer_form(schema: Mapping[str, Any]) -> str:
    """The words on the form of an answer, with its JSON schema."""
    return f"The schema of the answer:\n{json.dumps(schema, separators=(',', ':'))}"


def fenced(text: str, info: str = "") -> str:
    """A text in a fence that it does not contain."""
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"


def _shown(name: str, value: Any, question: StepInput) -> str:
    if isinstance(value, Facts):
        return _facts(value)
    if isinstance(value, TemplateInput):
        return _template(value, _language(question))
    if name == "drafts":
        return "\n\n".join(f"### {n}\n\n{_template(t, _language(question))}" for n, t in value.items())
    if name in ("best", "worst"):
        return _trials(value)
    if name == "device":
        return ", ".join(f"{n} {v}" for n, v in value.items() if v)
    if name == "calls":
        return "\n\n".join(_call(call) for call in value)
    if name == "rules":
        return ", ".join(value)
    if name in _FENCED:
        return fenced(value)
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, BaseModel):
        return _plain({n: v for n, v in value if v not in (None, "", (), {})})
    if isinstance(value, Mapping):
        return "\n".join(f"- `{name}`: {_inline(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "\n".join(f"- {_inline(item)}" for item in value)
    return _inline(value)


def _inline(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, tuple | list) and all(isinstance(v, str) for v in value):
        return "; ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _language(question: StepInput) -> str:
    kernel = getattr(question, "kernel", None)
    return "" if kernel is None else {"triton": "python"}.get(kernel.backend, kernel.backend)


def _kernel(kernel: KernelInput) -> str:
    launch = _launch(kernel.grid, kernel.block, kernel.shared_bytes, kernel.attributes)
    cache = (
        "nothing of its buffers in the last-level cache"
        if kernel.cache == "cold"
        else "its buffers in the cache"
    )
    lists: Sequence[tuple[str, Iterable[str]]] = (
        ("Arguments, in the kernel's order", kernel.arguments),
        ("Launches, which stay as they are", kernel.launches),
        ("Outputs are compared with the reference", (f"{n}: {t}" for n, t in kernel.tolerances.items())),
        ("Workloads", kernel.workloads),
        ("Constraints of the job", (_constraint(c.expression, c.reason) for c in kernel.constraints)),
        ("Checked as well", filter(None, [kernel.checked])),
        ("Compiled by", kernel.compiler),
        ("Options of the compiler, which stay as they are", kernel.options),
        ("Headers of the job", kernel.headers),
    )
    parts = [
        f"A {kernel.backend} kernel, entry `{kernel.entry}`. Launch: {launch}. It is timed with {cache}.",
        fenced(kernel.source, {"triton": "python"}.get(kernel.backend, kernel.backend)),
    ]
    for title, items in lists:
        listed = [f"- {item}" for item in items]
        parts += [f"{title}:", "\n".join(listed)] if listed else []
    return "\n\n".join(parts)


def _launch(grid: Sequence[str], block: Sequence[str], shared: str, attributes: str) -> str:
    words = f"grid ({', '.join(grid)}), block ({', '.join(block)})"
    words += f", {shared} bytes of dynamic shared memory" if shared not in ("", "0") else ""
    return words + (f", {attributes}" if attributes else "")


def _constraint(expression: str, reason: str) -> str:
    return f"`{expression}`" + (f": {reason}" if reason else "")


def _template(template: TemplateInput, language: str) -> str:
    launch = _launch(template.grid, template.block, template.shared_bytes, template.attributes)
    parts = [fenced(template.source, language), f"Launch: {launch}."]
    if template.parameters:
        rows = [
            f"- `{p.name}`: {', '.join(map(str, p.values))}; default {p.default}. {p.meaning}".rstrip()
            for p in template.parameters
        ]
        parts += ["Parameters:", "\n".join(rows)]
    if template.constraints:
        rows = [f"- {_constraint(c.expression, c.reason)}" for c in template.constraints]
        parts += ["Constraints:", "\n".join(rows)]
    return "\n\n".join(parts + ([f"Rules in it: {', '.join(template.applied)}."] if template.applied else []))


def _trials(trials: Sequence[TrialInput]) -> str:
    names = list(dict.fromkeys(name for t in trials for name in t.configuration))
    rows = [[f"{1 / t.objective:.3f}x", *(t.configuration.get(n, "") for n in names)] for t in trials]
    return _table(["speed", *names], rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def _call(call: CallInput) -> str:
    chosen = _inline(list(call.configurations)) if call.configurations else ""
    head = f"`{call.tool}` {call.draft} {chosen}".rstrip()
    return f"{head} ({'done' if call.ok else 'FAILED'}, {call.seconds:g} s):\n{fenced(call.answer)}"


def _facts(known: Facts) -> str:
    parts = []
    if known.peak_bytes_per_s is not None:
        parts.append(f"A copy reaches {known.peak_bytes_per_s / 1e9:.0f} GB/s here.")
    if known.launch_us is not None:
        parts.append(f"An empty kernel takes {known.launch_us:.3g} µs.")
    made = [" ".join(parts), "The user's kernel:", _measured(known.baseline)]
    if known.best is not None:
        chosen = _inline(known.best.configuration)
        made += [f"The best so far, {1 / known.best.objective:.3f}x, {chosen}:", _measured(known.best)]
    if known.trials:
        made.append(f"{known.measured} of {known.trials} trials were measured; the others were rejected.")
    made += [
        f"- `{e.parameter}` explains {e.importance:.0%} of the variance of the time. Best time by value, "
        f"as a share of the user's: {', '.join(f'{v}: {o:.3f}' for v, o in e.best.items())}"
        + (f". Rejected: {', '.join(f'{v}: {r}' for v, r in e.rejected.items())}" if e.rejected else "")
        for e in known.effects
    ]
    made += [
        f"- {' and '.join(i.parameters)} belong together: {i.importance:.0%} beyond each alone"
        for i in known.interactions
    ]
    return "\n\n".join(filter(None, made))


def _measured(kernel: KernelFacts) -> str:
    compiled = (
        ("registers", kernel.registers),
        ("spilled bytes", kernel.spill_bytes),
        ("static shared bytes", kernel.static_shared_bytes),
        ("local bytes", kernel.local_bytes),
    )
    rows = [
        [
            *(w.workload, f"{w.time_us:.4g}"),
            "" if w.floor_us is None else f"{w.floor_us:.3g} ({w.floor_bound})",
            "" if w.roofline_share is None else f"{w.roofline_share:.0%}",
            *(w.bytes, f"{w.bytes_per_s / 1e9:.1f}", f"{w.blocks} x {w.threads_per_block}", w.shared_bytes),
            "" if w.occupancy is None else f"{w.occupancy:.0%}",
        ]
        for w in kernel.workloads
    ]
    heads = ["workload", "µs", "floor µs", "share of floor", "bytes", "GB/s", "blocks x threads"]
    parts = [_table([*heads, "dynamic shared bytes", "occupancy"], rows)] if rows else []
    parts.append(", ".join(f"{name} {value}" for name, value in compiled if value is not None))
    counted = ", ".join(f"{name} {value:.6g}" for name, value in kernel.counters.items())
    parts.append(f"Counters on the heaviest workload: {counted}" if counted else kernel.counters_missing)
    return "\n\n".join(filter(None, parts))
