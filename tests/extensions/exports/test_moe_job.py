"""Jobs of an engine's fused MoE kernel: they parse, compile for every block height, and export as a table."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.extensions.exports.test_engine_table import tuned
from warpsmith.backends.base import CompileRequest
from warpsmith.cli.app import app
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.kernels.specialisation import specialisation_of
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.commands import tables_command
from warpsmith.extensions.exports.tables.engine_table import engine_table
from warpsmith.extensions.exports.tables.engines import ENGINES, NEEDED, MoeShape
from warpsmith.extensions.exports.tables.found_rows import found_rows
from warpsmith.extensions.exports.tables.model_config import SIZES, MoeLayer
from warpsmith.extensions.exports.tables.moe_job import MoeWork, moe_jobs
from warpsmith.extensions.exports.wanted import ExportRequest
from warpsmith.extensions.triton.backend.compile import compile_triton
from warpsmith.extensions.triton.signature_check import triton_findings
from warpsmith.job_files.jobfile import parse_job
from warpsmith.registry import Kind, load

FILE = Path(__file__).parents[2] / "data" / "fused_moe.py"
TEXT = FILE.read_text()
BLOCKS = MoeShape(8, 512, "fp8_w8a8", (128, 128))
SHAPES = {
    "bf16": MoeShape(8, 512),
    "fp8": MoeShape(8, 512, "fp8_w8a8"),
    "fp8 by channel": MoeShape(8, 512, "fp8_w8a8", None, True),
    "fp8 by blocks": BLOCKS,
    "int8 by channel": MoeShape(8, 512, "int8_w8a8", None, True),
}
FORMS = ("vllm-config", "sglang-config")
LOG = "Config file not found at /c/E=8,N=512,device_name=NVIDIA_H200.json\n"
CONFIG = {"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 512, "num_local_experts": 8}
CONFIG |= {"num_experts_per_tok": 2}


def jobs(
    shape: MoeShape, form: str = "vllm-config", text: str = TEXT, device: str = "NVIDIA H200"
) -> list[Job]:
    made = moe_jobs(MoeWork(form, MoeLayer(shape, 1024, 2), device), text, "fused_moe.py")
    return [parse_job(json.loads(json.dumps(job))) for job in made]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_size_is_in_the_job_of_its_default(name: str, form: str) -> None:
    shape = SHAPES[name]
    default = ENGINES[form].default
    assert default is not None
    rule = default(shape.experts, shape.dtype, shape.block_shape)
    assert rule is not None
    made, seen = jobs(shape, form), []
    for job in made:
        assert not list(triton_findings(job))
        assert job.searcher == "shapes" and not job.rewrite.enabled
        for workload in job.workloads:
            seen.append(workload.dimensions["M"])
            assert job.space.defaults == rule.configuration(seen[-1])
    assert seen == list(SIZES) and len({job.name for job in made}) == len(made)


@pytest.mark.parametrize("height", [16, 128])
@pytest.mark.parametrize("name", SHAPES)
def test_the_entry_compiles_without_a_device(
    name: str, height: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    job = jobs(SHAPES[name])[-1]
    kernel, values = job.kernel, job.space.defaults | {"BLOCK_SIZE_M": height, "num_stages": 3}
    scope = job.workloads[0].scope() | values
    assert kernel.source is not None
    variant = specialisation_of(
        kernel.source, kernel.entry, kernel.arguments, kernel.constexprs, values, scope
    )
    names = tuple(argument.name for argument in kernel.arguments)
    fields: dict[str, Any] = {"specialisation": variant, "arguments": names}
    request = CompileRequest(
        Backend.TRITON, kernel.source, kernel.entry, (), (), "auto", "sm_90", 0, **fields
    )
    assert isinstance(made := compile_triton(request), Compiled), made


def test_operands_are_swapped_where_the_engine_does() -> None:
    text = TEXT.replace("FUTURE: tl.constexpr = False", "swap_ab: tl.constexpr")
    swapped = "swap_ab=BLOCK_SIZE_M < 64 and BLOCK_SIZE_N >= 64"
    for device, found in (("NVIDIA H200", True), ("NVIDIA H20-3e", True), ("NVIDIA B200", False)):
        (job, *_) = jobs(BLOCKS, text=text, device=device)
        assert (swapped in (job.kernel.source or "")) == found
    assert swapped not in (jobs(SHAPES["bf16"], text=text)[0].kernel.source or "")
    assert len(jobs(SHAPES["bf16"], device="")) > 1
    (job,) = jobs(BLOCKS, "sglang-config", text)
    row = job.space.defaults | {"BLOCK_SIZE_M": 16}
    (rule,) = job.constraints
    allowed = [n for n in (32, 64, 256) if rule.expression.evaluate(row | {"BLOCK_SIZE_N": n})]
    assert allowed == [32, 256]


def test_a_table_of_blocks_keeps_the_depth_that_shares_a_scale() -> None:
    for form in FORMS:
        for job in jobs(BLOCKS, form):
            assert {p.name: p.values for p in job.parameters}["BLOCK_SIZE_K"] == (128,)
            labels = {"batch": "M", "E": "8", "N": "512", "dtype": "fp8_w8a8", "block_shape": "128,128"}
            assert job.labels == {f"table.{key}": value for key, value in labels.items()}


@pytest.mark.parametrize(
    ("shape", "text", "device", "message"),
    [
        (BLOCKS, TEXT, "", "--device: decides how fp8 is multiplied"),
        (MoeShape(8, 512, "int8_w8a8"), TEXT, "H200", "dtype: no job is made for these weights of int8_w8a8"),
        (
            MoeShape(8, 512, "int4_w4a16"),
            TEXT,
            "H200",
            "dtype: no job is made for these weights of int4_w4a16",
        ),
        (BLOCKS, "def f(:", "H200", "--kernel: fused_moe.py is no Python"),
        (BLOCKS, "x = 1", "H200", "--kernel: fused_moe.py has no @triton.jit function fused_moe_kernel"),
        (
            BLOCKS,
            TEXT.replace("    EM,", "    EM,\n    odd,\n    odder,"),
            "H200",
            "has odd, odder, which is",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused(shape: MoeShape, text: str, device: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        jobs(shape, text=text, device=device)
    assert message in str(caught.value)


def ran(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["tables", *map(str, words)], env={"COLUMNS": "160"})
    return done.exit_code, done.output + str(done.exception or "")


@pytest.mark.parametrize(
    ("text", "more"), [(json.dumps(CONFIG), ()), (LOG, ("--hidden", 1024, "--top-k", 2))]
)
def test_the_command_writes_jobs(text: str, more: tuple[Any, ...], tmp_path: Path) -> None:
    source, out = tmp_path / "input", tmp_path / "jobs"
    source.write_text(text)
    code, shown = ran(
        source, *more, "--write", out, "--kernel", FILE, "--engine", "vllm", "--device", "NVIDIA H200"
    )
    assert code == 0 and "7 jobs in" in shown.replace("\n", ""), shown
    for file in out.iterdir():
        job = parse_job(json.loads(file.read_text()))
        assert job.name == file.stem and job.kernel.entry == "fused_moe_table"


def test_each_model_has_its_own_sizes(tmp_path: Path) -> None:
    for hidden in (1024, 2048):
        (tmp_path / f"{hidden}.json").write_text(
            json.dumps(CONFIG | {"hidden_size": hidden, "intermediate_size": hidden})
        )
    own = ("--kernel", FILE, "--engine", "vllm", "--device", "NVIDIA H200", "--write", tmp_path / "jobs")
    assert ran(tmp_path / "1024.json", tmp_path / "2048.json", *own)[0] == 0
    made = [json.loads(file.read_text()) for file in (tmp_path / "jobs").iterdir()]
    shapes = {job["labels"]["table.N"]: job["kernel"]["arguments"][0]["shape"] for job in made}
    assert shapes == {"1024": ["M", 1024], "2048": ["M", 2048]}


def test_what_the_command_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = tmp_path / "log", ("--write", tmp_path / "jobs")
    log.write_text(LOG)
    monkeypatch.setattr(tables_command, "find_spec", lambda name: None)
    assert "no engine with these tables is installed here" in ran(log, *write)[1]
    assert "give the engine whose kernel" in ran(log, *write, "--kernel", FILE)[1]
    assert "no log says it; give --hidden" in ran(log, *write, "--kernel", FILE, "--engine", "vllm")[1]
    assert ran(log, "--engine", "sglang")[0] == 1


def test_the_kernel_of_an_installed_engine_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "vllm" / "model_executor" / "layers" / "fused_moe"
    place.mkdir(parents=True)
    (tmp_path / "vllm" / "__init__.py").write_text("raise SystemExit('it is imported')\n")
    own = TEXT.replace(
        "import triton\nimport triton.language as tl", "from vllm.triton_utils import tl, triton"
    )
    (place / "fused_moe.py").write_text(own)
    row = dict(zip(NEEDED, (16, 64, 128, 1, 4, 3), strict=True))
    (place / "configs").mkdir()
    table = place / "configs" / "E=8,N=1024,device_name=NVIDIA_H100_80GB_HBM3.json"
    table.write_text(json.dumps({"16": row}))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    code, shown = ran(tmp_path / "config.json", "--write", tmp_path / "jobs", "--device", "NVIDIA H200")
    assert code == 0 and "jobs in" in shown, shown
    texts = [json.loads(file.read_text())["kernel"]["source"] for file in (tmp_path / "jobs").glob("vllm-*")]
    made = [json.loads(file.read_text()) for file in (tmp_path / "jobs").glob("vllm-*")]
    assert [job["known_winners"][0]["dimensions"] for job in made] == [{"M": 16}] * len(made)
    assert all(parse_job(job).known_winners[0].weight < 1 for job in made)
    assert texts and all("import triton.language as tl" in text and "vllm." not in text for text in texts)


@pytest.mark.parametrize("form", FORMS)
def test_a_result_exports_without_options(form: str) -> None:
    (job, *_) = jobs(BLOCKS, form)
    fast = job.space.defaults | {"BLOCK_SIZE_N": 64, "GROUP_SIZE_M": 16}
    sizes = [workload.dimensions["M"] for workload in job.workloads]
    base = tuned({sizes[0]: fast}, dimensions=[{"M": size, "K": 1} for size in sizes])
    keys = [workload.key for workload in job.workloads]
    fields: dict[str, Any] = {
        name: tuple(row.model_copy(update={"workload": key}) for row, key in zip(rows, keys, strict=True))
        for name, rows in (("dispatch", base.dispatch), ("comparisons", base.comparisons))
    }
    own = base.candidates[0].model_copy(update={"source": job.kernel.source, "space": job.space})
    fields |= {"job": job, "candidates": (own,), "compiler": "triton 3.6.0"}
    shown = base.model_copy(update=fields)
    table = engine_table(shown, form, {})
    assert list(table.rows) == sizes and table.rows[sizes[0]].configuration == fast
    assert table.rows[sizes[-1]].configuration == job.space.defaults
    assert "E=8,N=512,device_name=" in table.path and ",dtype=fp8_w8a8,block_shape=[128," in table.path
    unserved = [entry.model_copy(update={"configuration": None}) for entry in shown.dispatch]
    rows = list(found_rows([shown.model_copy(update={"dispatch": tuple(unserved)})]))
    assert [row.speedup for row in rows] == [1.0] * len(sizes), "what is not served is no gain of a table"
    assert [row.speedup > 1 for row in found_rows([shown])] == [size == sizes[0] for size in sizes]
    (asked,) = (text for name, text in load(Kind.EXPORT, form)(ExportRequest(shown)).items() if ".md" in name)
    assert "tokens routed evenly" in asked and f"| {sizes[-1]} | 6.0 | | the default stays | |" in asked
