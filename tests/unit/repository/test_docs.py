"""The documents against the program: every field, setting, rule and message that they name."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from api.routes.example_job import JOB_EXAMPLE
from api.routes.service_checks import check_job
from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.arguments.draw import Draw
from warpsmith.domain.arguments.field import Field
from warpsmith.domain.jobs.job import (
    AgentPolicy,
    Budget,
    Job,
    NumpyReference,
    Objective,
    RewritePolicy,
    Tolerance,
    Workload,
)
from warpsmith.domain.jobs.layout_checks import layout_checks
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch import Launch, SequencedLaunch
from warpsmith.domain.templates.space import Constraint, Parameter
from warpsmith.errors import InvalidInput
from warpsmith.extensions.rules.catalogue import ALL_RULES
from warpsmith.job_files.jobfile import parse_job
from warpsmith.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
FORM = (DOCS / "job-form.md").read_text() + (DOCS / "arguments.md").read_text()
FORM += (DOCS / "draws.md").read_text()
FORM += (DOCS / "sequences.md").read_text()
TEMPLATES = (DOCS / "templates.md").read_text()
ELEMENT_RULES = (DOCS / "element-rules.md").read_text()
FLEET = (DOCS / "running-a-fleet.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"
DIARIES = (RESULTS / "search" / "figures.md", RESULTS / "search" / "tried.md", RESULTS / "h200-production.md")
PAGES = (
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *DIARIES,
)
MODELS: tuple[type[BaseModel], ...] = (
    Job,
    Workload,
    NumpyReference,
    Tolerance,
    Objective,
    Budget,
    RewritePolicy,
    AgentPolicy,
    Kernel,
    Argument,
    Field,
    Draw,
    Launch,
    SequencedLaunch,
    Parameter,
    Constraint,
)
ONE_LAUNCH = {"entry": "scale", "arguments": ["x", "y", "n"], "launch": {"grid": [1], "block": [1]}}
MISTAKES: tuple[tuple[str, Any], ...] = (
    ("name", "a/b"),
    ("budgte", {}),
    ("workloads", []),
    ("reference", {"kind": "torch"}),
    ("reference", {"kind": "numpy"}),
    ("tolerances", {"x": {"rtol": 0, "atol": 0}}),
    ("parameters", [{"name": "BLOCK", "values": [64]}, {"name": "BLOCK", "values": [32]}]),
    ("parameters", [{"name": "n", "values": [1]}]),
    ("parameters", [{"name": "int", "values": [1]}]),
    ("parameters", [{"name": "BLOCK", "values": [1, 1]}]),
    ("parameters", [{"name": "BLOCK", "values": [1, 2], "default": 3}]),
    ("constraints", [{"expression": "BLOCK <="}]),
    ("constraints", [{"expression": "BLOK <= 4"}]),
    ("agents", {"provider": "magic"}),
    ("agents", {"provider": "openai"}),
    ("searcher", "bayes"),
    ("objective", {"cache": "warm"}),
    ("objective", {"metric": "energy"}),
    ("budget", {"trials": 0}),
    ("seed", -1),
    ("kernel.backend", "replay"),
    ("kernel.source_file", "scale.cl"),
    ("kernel.entry", ""),
    ("kernel.options", ["-o/x"]),
    ("kernel.includes", ["flashinfer"]),
    ("kernel.include_dirs", ["include"]),
    ("kernel.files", {"../x.h": ""}),
    ("kernel.compiler", "gcc"),
    ("kernel.arguments.1.role", "input"),
    ("kernel.arguments.1.name", "x"),
    ("kernel.arguments.0.dtype", "float"),
    ("kernel.arguments.0.role", "in"),
    ("kernel.arguments.0.shape", []),
    ("kernel.arguments.2.value", None),
    ("kernel.arguments.1.draw", {"distribution": "uniform"}),
    ("kernel.arguments.0.draw", {"std": -1}),
    ("kernel.arguments.0", {"name": "s", "role": "struct", "fields": [], "align": 3}),
    ("kernel.arguments.2", {"name": "n", "role": "pointer", "to": "q"}),
    ("kernel.arguments.2", {"name": "n", "role": "pointer", "to": "x", "offset": "n + 1"}),
    ("kernel.arguments.2", {"name": "n", "role": "scalar", "dtype": "int32", "values": [1, 2, 3, 4, 5]}),
    ("kernel.buffers", [{"name": "lost", "dtype": "int8", "role": "input", "shape": [1]}]),
    ("kernel.launch.grid", ["ceil_div(m, BLOCK)"]),
    ("kernel.launch.grid", ['__import__("os")']),
    ("kernel.launch.block", ["n - 65536"]),
    ("kernel.launch.shared_bytes", "foo"),
    ("kernel.constexprs", {"BLOCK": 4}),
    ("kernel.launches", [ONE_LAUNCH]),
    ("workloads", [{"dimensions": {"n": 4}}, {"dimensions": {"m": 4}}]),
    ("workloads", [{"dimensions": {"n": 4}}, {"dimensions": {"n": 4}}]),
    ("workloads", [{"dimensions": {"n": 4}, "weight": 0}]),
)


def message_of(field: str, value: object) -> str:
    """The first line of what a job says when one of its fields is set to that."""
    data = copy.deepcopy(JOB_EXAMPLE)
    node: Any = data
    *parents, last = [int(part) if part.isdigit() else part for part in field.split(".")]
    for part in parents:
        node = node[part]
    node[last] = value
    with pytest.raises(InvalidInput) as caught:
        check_job(parse_job(data), Settings(_env_file=None))
    said = InvalidInput(caught.value.field, caught.value.message)
    return str(said).splitlines()[0]


def quoted_messages() -> list[str]:
    """What the form's document quotes, each up to where it is cut off."""
    quotes = re.findall(r"`([^`\n]+)`", FORM)
    quotes += re.findall(r"^(?:error: (?:job.yaml:\d+: )?)?(\S+: .*)$", FORM, re.MULTILINE)
    return [quote.removesuffix("...").rstrip(" ,") for quote in quotes if ": " in quote]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_the_form_names_every_field(model: type[BaseModel]) -> None:
    assert [name for name in model.model_fields if not re.search(rf"\b{name}\b", FORM)] == []


@pytest.mark.parametrize(("field", "value"), MISTAKES, ids=[f"{i}-{f}" for i, (f, _) in enumerate(MISTAKES)])
def test_the_form_quotes_what_a_mistake_says(field: str, value: object) -> None:
    message = message_of(field, value)
    assert any(message.startswith(quote) for quote in quoted_messages()), message


def test_the_form_s_example_is_a_job() -> None:
    job = parse_job(yaml.safe_load(blocks(FORM, "yaml")[0]))
    check_job(job, Settings(_env_file=None))
    assert job.name == "scale"


def test_the_struct_of_the_document_is_laid_out_as_it_says() -> None:
    data = yaml.safe_load(blocks((DOCS / "arguments.md").read_text(), "yaml")[0])
    kernel = {"backend": "cuda", "source": "", "entry": "f", "launch": {"grid": [1], "block": [32]}}
    workloads = [{"dimensions": {"batch": 2, "heads": 8, "d": 128}}]
    job = Job.model_validate({"name": "d", "kernel": kernel | data, "workloads": workloads})
    assert "sizeof(DecodeParams) == 48" in layout_checks(job.kernel)
    assert '"params.heads is at byte 28 in the job"' in layout_checks(job.kernel)


def test_the_form_s_defaults_are_those_of_the_program() -> None:
    for name, field in Budget.model_fields.items():
        (row,) = (ln for ln in FORM.splitlines() if ln.startswith("|") and f"`budget.{name}`" in ln)
        assert f"`{json.dumps(field.default)}`" in row


def test_the_documents_have_a_section_for_every_rule_in_order() -> None:
    order = [rule.name for rule in ALL_RULES]
    listed = [re.findall(r"^### `(\w+)`$", text, re.MULTILINE) for text in (TEMPLATES, ELEMENT_RULES)]
    assert sorted([*listed[0], *listed[1]]) == sorted(order)
    for names in listed:
        assert names == [name for name in order if name in names]


def test_excerpts_of_templates_stand_in_the_examples_and_golden_files() -> None:
    """Lines of C, without their trailing remarks; what the golden files wrap differently is joined."""
    files = [*(ROOT / "examples").rglob("*.c[lu]"), *(ROOT / "tests" / "golden").rglob("*.c[lu]")]
    known = "".join("".join(f.read_text().split()) for f in files)
    lines = [
        re.sub(r"\s//.*$", "", line).strip()
        for block in blocks(TEMPLATES, "c")
        for line in block.splitlines()
    ]
    wanted = ["".join(line.split()) for line in lines if len(line) > 3]
    assert len(wanted) > 20
    assert [line for line in wanted if line.strip("{}") not in known] == []


def test_the_fleet_document_lists_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(WARPSMITH_\w+)` \| ([^|]+) \|", FLEET, re.MULTILINE))
    assert set(rows) == {f"WARPSMITH_{name.upper()}" for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        shown = rows[f"WARPSMITH_{name.upper()}"].strip()
        if shown.startswith("`"):
            chosen = Settings(_env_file=None, **{name: shown.strip("`")})
            assert getattr(chosen, name) == field.default, name
        else:
            assert not field.default, name


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_links_and_paths_of_documents_exist(path: Path) -> None:
    text = path.read_text()
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in t]
    assert [t for t in links if not (path.parent / t).exists()] == []
    named = re.findall(
        r"`((?:warpsmith|tests|worker|api|db|agents|examples|scripts|requirements)/[\w./-]*)`", text
    )
    assert [t for t in named if not (ROOT / t).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_anchors_of_links_are_headings(path: Path) -> None:
    """GitHub makes an anchor of a heading: small letters, hyphens for blanks, no other punctuation."""
    lost = []
    for page, anchor in re.findall(r"\]\(((?:[\w./-]+\.md)?)#([^)]+)\)", path.read_text()):
        target = path.parent / page if page else path
        headings = re.findall(r"^#+ (.+)$", target.read_text().lower(), re.MULTILINE)
        if anchor not in {re.sub(r"[^\w -]", "", h).replace(" ", "-") for h in headings}:
            lost.append(f"{page}#{anchor}")
    assert lost == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_prose_of_documents_is_wrapped(path: Path) -> None:
    """Rows of tables and blocks of code may be longer, since Markdown cannot break them."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [ln for ln in prose.splitlines() if len(ln) > 120 and not ln.startswith("|")] == []


def test_the_readme_is_one_page() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 150
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len([word for word in prose.split() if word.strip("|-")]) <= 700
