"""`init` on scripts of Kernel Tuner: what a job says is what the script says, or it is named."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from warpsmith.cli.app import app
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.extensions.importers.kernel_tuner import read_script
from warpsmith.extensions.importers.script import Script
from warpsmith.extensions.scaffold.command.init import InitOptions, formed, scaffold
from warpsmith.extensions.scaffold.ports import opened
from warpsmith.job_files.jobfile import load_job

TRANSPOSE = """__kernel void tr(__global float* out, __global const float* a, int m, int n) {
  int x = get_group_id(0) * block_size_x * tile + get_local_id(0); int y = get_group_id(1);
  for (int t = 0; t < tile; t++) { int c = x + t * block_size_x; if (c < n) out[c * m + y] = a[y * n + c]; }
}
"""
HEAD = "import numpy as np\nfrom kernel_tuner import tune_kernel\n"
FUNCTION = f"""{HEAD}
def restrict(p):
    return p["block_size_x"] * p["tile"] <= 512 and (p["tile"] != 3 or p["block_size_x"] > 64)
def run(m=512, n=300):
    a = np.random.rand(m, n).astype(np.float32)
    out = np.zeros((n, m), np.float32)
    tp = {{"block_size_x": [2**i for i in range(3, 9)], "tile": list(range(1, 5))}}
    return tune_kernel("tr", "k.cl", (n, m), [out, a, np.int32(m), np.int32(n)], tp, restrictions=restrict,
                       grid_div_x=["block_size_x*tile"], grid_div_y=[], compiler_options=["-DFOO=1"])
if __name__ == "__main__":
    run()
"""
MACRO_TYPE = f'''{HEAD}
kernel = """
__kernel void cvt(__global VT *y, __global const VT *x, int n) {{
  int i = get_global_id(0) * VW;
  for (int k = 0; k < VW; k++) if (i + k < n) y[i + k] = x[i + k] * (VT)2;
}}
"""
n = np.int32(2**20)
x = np.ones(n, dtype=np.float32); y = np.empty_like(x)
tune_params = dict(block_size_x=[64, 128], VT=["float", "double", "unsigned int"], VW=[1, 2, 4])
tune_kernel("cvt", kernel, n, [y, x, n], tune_params, grid_div_x=["block_size_x", "VW"],
            answer=[x * 2, None, None], atol=1e-6, lang="opencl")
'''
SHIFTED = f'''{HEAD}
src = """
__kernel void fill(__global TYPE *y, __global const float *x, int n) {{
  int i = get_global_id(0); if (i < n) y[i] = (TYPE)x[i];
}}
"""
n = np.int32(1 << 20)
x = np.full(n, 3.0, dtype=np.float32)
y = np.zeros(n, dtype=np.float64)
tune_kernel("fill", src, n, [y, x, n], dict(block_size_x=[64, 128], TYPE=["double"]), lang="opencl")
'''
SCALE = """__kernel void k(__global float *y, __global const float *x, int n) {
  int i = get_group_id(0) * block_size_x + get_local_id(0); if (i < n) y[i] = x[i] * tile;
}
"""
PLAIN = f"""{HEAD}
n = 4096
x = np.random.randn(n).astype(np.float32)
params = {{"block_size_x": [32, 64], "tile": [1, 2]}}
more = dict()
#
tune_kernel("k", "k.cl", n, [np.zeros_like(x), x, np.int32(n)], params, **more)
"""


def text_of(folder: Path, script: str, kernel: str = SCALE) -> str:
    """The job file of a script, without a compiler's trials."""
    (folder / "k.cl").write_text(kernel)
    (folder / "tune.py").write_text(script)
    target = folder / "job.yaml"
    found = opened([folder / "tune.py"], target, InitOptions())
    return formed(scaffold(found.sources, target, found.wanted), found.sources, target, found.wanted)


def job_of(folder: Path, script: str, kernel: str = SCALE) -> tuple[Job, str]:
    """The job of a script, and its text."""
    text = text_of(folder, script, kernel)
    (folder / "job.yaml").write_text(text)
    return load_job(folder / "job.yaml"), text


def plain(statements: str) -> str:
    """The plain script with further statements before its call."""
    return PLAIN.replace("#", statements)


def test_a_restriction_that_is_a_function_is_a_constraint(tmp_path: Path) -> None:
    job, text = job_of(tmp_path, FUNCTION, TRANSPOSE)
    allowed = "block_size_x * tile <= 512 and (tile != 3 or block_size_x > 64)"
    assert [c.expression.text for c in job.constraints] == [allowed]
    assert "Not taken over" not in text


def test_elements_of_a_macro_type_are_those_of_the_scripts_arrays(tmp_path: Path) -> None:
    job, text = job_of(tmp_path, MACRO_TYPE)
    y, x, _ = job.kernel.arguments
    assert (y.dtype.value, x.dtype.value) == ("float32", "float32")
    assert x.draw is not None and (x.draw.distribution.value, x.draw.low) == ("constant", 1)
    assert {p.name: p.values for p in job.parameters}["VT"] == ("float", "double")
    assert job.tolerances["y"].atol == 1e-6
    assert "Not taken over from tune.py: answer." in text
    assert "TODO: a value of a job is a number or one word; VT has no 'unsigned int'." in text
    assert "TODO: x has one type in a job, and `VT` is a parameter: keep values of one size." in text


def test_texts_that_are_numbers_become_numbers(tmp_path: Path) -> None:
    job, _ = job_of(tmp_path, PLAIN.replace("[32, 64]", '["32", "64", "0.5"]'))
    assert job.parameters[0].values == (32, 64, 0.5)


def test_sizes_by_shifts_are_sizes(tmp_path: Path) -> None:
    job, _ = job_of(tmp_path, SHIFTED)
    y, x, _ = job.kernel.arguments
    assert dict(job.workloads[0].dimensions) == {"n": 1 << 20}
    assert [e.text for e in job.kernel.launch.block] == ["block_size_x"]
    assert [e.text for e in job.kernel.launch.grid] == ["ceil_div(n, block_size_x)"]
    assert y.dtype.value == "float64" and x.draw is not None and x.draw.low == 3


@pytest.mark.parametrize(
    "size",
    [
        "1 << 12", "4096 | 0", "8191 & ~4095", "abs(-4096)",
        "sum([4000, 96])", "len(np.zeros(4096))",
        "-(-4096)",
        "4096 if 3 > 2 else 1", "max(1, 4096)", "int(4096.0)", "round(4096.2)",
        "np.prod((64, 64))",
        "[i for i in range(5000) if i % 4096 == 0][1]", "{'a': 4096}['a']",
        "int('4096')", "2**12 // 1 % 5000",
    ],
)  # fmt: skip
def test_arithmetic_of_scripts_is_evaluated(tmp_path: Path, size: str) -> None:
    script = PLAIN.replace("n = 4096", f"n = {size}")
    job, _ = job_of(tmp_path, script)
    found = dict(job.workloads[0].dimensions)
    assert job.kernel.launch.grid[0].evaluate({**found, "block_size_x": 32, "tile": 1}) == 128


@pytest.mark.parametrize(
    ("statements", "wanted"),
    [
        ('params["tile"] = [1 << i for i in range(5) if i != 2]', (1, 2, 8, 16)),
        ('params.update(tile=[3])\nparams["tile"] += [5]', (3, 5)),
        ('for axis in ["tile"]:\n    params[f"{axis}"] = [7, 8]', (7, 8)),
        ('params["tile"] = []\nb = 1\nwhile True:\n    params["tile"].append(b)\n    b *= 2\n'
         "    if b > 4: break",
         (1, 2, 4)),
        ('def powers(n):\n    if n > 2:\n        return [2**i for i in range(n)]\n    return [1]\n'
         'params["tile"] = powers(3)', (1, 2, 4)),
        ('params["tile"], other = [9, 10], 2', (9, 10)),
        ('params["%s%s" % ("ti", "le")] = list(map(int, "1 6".split()))', (1, 6)),
        ('del params["tile"]\nparams.setdefault("tile", []).extend(sorted({4, 2}))', (2, 4)),
    ],
)  # fmt: skip
def test_statements_that_build_the_space_are_evaluated(tmp_path: Path, statements: str, wanted: Any) -> None:
    (tmp_path / "tune.py").write_text(plain(statements))
    (tmp_path / "k.cl").write_text(SCALE)
    found = {p.name: p.values for p in read_script(tmp_path / "tune.py").known.parameters}
    assert found["tile"] == wanted


@pytest.mark.parametrize(
    "statements",
    [
        'params["tile"] = [i for i in [1, 2, 3] if f(i)]',
        'for i in sizes():\n    params["tile"] = params["tile"] + [i]',
        'params["tile"].append(unknown)',
        'params["tile"].shuffle(3)',
        "params.update(made())",
        "params = {**made(), 'tile': [1]}",
        'params["tile"] = [0] * 10**9',
        'params["tile"] = [1 << 10**9]',
        'for i in range(10**6):\n    for j in range(10**6):\n        params["tile"] = [i]',
    ],
)
def test_a_space_that_is_not_evaluated_is_named_never_another(tmp_path: Path, statements: str) -> None:
    (tmp_path / "tune.py").write_text(plain(statements))
    (tmp_path / "k.cl").write_text(SCALE)
    with pytest.raises(InvalidInput, match="made while"):
        read_script(tmp_path / "tune.py")


RESTRICTIONS = [
    ("[lambda p: p['tile'] < 2]", "tile < 2"),
    ("lambda tile: tile < 2", "tile < 2"),
    ("keep", "tile < 2 and block_size_x >= 32"),
    ("['tile<2', keep]", "tile<2"),
    ("branches", "False if tile * block_size_x > n else tile < 2"),
    ("MaxProdConstraint(64)", None),
    ("[weird]", None),
    ("made()", None),
]


@pytest.mark.parametrize(("given", "wanted"), RESTRICTIONS)
def test_every_restriction_is_a_constraint_or_named(tmp_path: Path, given: str, wanted: str | None) -> None:
    functions = """
def keep(p): return p["tile"] < 2 and p["block_size_x"] >= 32
def branches(p):
    \"\"\"Words.\"\"\"
    threads = p["tile"] * p["block_size_x"]
    if threads > n:
        return False
    return p["tile"] < 2
def weird(p): return any(v > 3 for v in p.values())
"""
    job, text = job_of(tmp_path, plain(f"{functions}\nmore['restrictions'] = {given}"))
    if wanted is None:
        assert job.constraints == () and "Not taken over from tune.py:" in text
    else:
        assert job.constraints[0].expression.text == wanted


KEYWORDS = [
    "answer",
    "verify",
    "verbose",
    "device",
    "platform",
    "texmem_args",
    "compiler",
    "defines",
    "log",
    "iterations",
    "quiet",
    "strategy",
    "strategy_options",
    "cache",
    "metrics",
    "simulation_mode",
    "observers",
    "objective",
    "objective_higher_is_better",
    "other",
]


def test_every_keyword_is_used_or_named_in_one_line(tmp_path: Path) -> None:
    more = ", ".join(f"{name}=1" for name in KEYWORDS)
    _, text = job_of(tmp_path, plain(f"more.update({more}, lang='OpenCL')\n"))
    assert f"# Not taken over from tune.py: {', '.join(KEYWORDS)}." in text
    text = text_of(tmp_path, PLAIN.replace("params, **more", "params, *rest()"))
    assert "# Not taken over from tune.py: answer, verify, verbose" in text
    assert "Not taken over from tune.py: atol" in text
    assert "Not taken over from tune.py: **." in text_of(tmp_path, PLAIN.replace("**more", "**rest()"))


def test_facts_stay_where_the_size_is_not_known(tmp_path: Path) -> None:
    text = text_of(tmp_path, SHIFTED.replace("1 << 20", "size()"))
    data = yaml.safe_load(text)
    y, x, _ = data["kernel"]["arguments"]
    assert (y["dtype"], x["draw"]) == ("float64", {"distribution": "constant", "low": 3.0})
    assert data["kernel"]["launch"]["block"] == ["block_size_x"]
    assert "problem_size (line 9: size() is not evaluated); grid is a guess." in text
    assert "sizes that matter" in text


@pytest.mark.parametrize("made", ["made(n)", "np.zeros(n, np.complex64)", "np.zeros(n, dtype=kind())"])
def test_no_type_is_said_that_the_script_does_not_say(tmp_path: Path, made: str) -> None:
    text = text_of(tmp_path, SHIFTED.replace("np.zeros(n, dtype=np.float64)", made))
    [line] = [row for row in text.split("\n") if "name: y" in row]
    assert "TODO: bytes of" in line and "dtype as" not in line and "dtype, shape as" not in line


@pytest.mark.parametrize(
    "line",
    [
        "while True: pass",
        "x = [[a for a in range(1000)] for b in range(1000)]",
        "for i in range(10**6):\n    for j in range(10**6): pass",
        "x = 'a'\nfor i in range(10**6): x = x + x",
        "x = 1\nfor i in range(10**6): x = x + x",
        "a, b = [1], [1]\nfor i in range(60): a, b = [a, a], [b, b]\nx = a == b",
        "x = f'{1:>100000000}'\nx = '%100000000d' % 1",
        "def f(n): return f(n) + f(n) + f(n) + f(n) + f(n) + f(n)\nx = f(1)",
        "x = [1]\nfor i in range(10**6): x.extend(x)",
    ],
)
def test_no_script_is_read_for_long(line: str) -> None:
    began = time.process_time()
    script = Script(f"{line}\ntune_kernel('k')", ("tune_kernel",))
    assert [c.arguments for c in script.calls] == [("k",)]
    assert time.process_time() - began < 5


@pytest.mark.parametrize("name", ["None", "int", "size x", "class", "n"])
def test_no_file_is_refused_for_its_form(tmp_path: Path, name: str) -> None:
    text = text_of(tmp_path, plain(f"params[{name!r}] = [1, 2]"))
    (tmp_path / "job.yaml").write_text(text)
    load_job(tmp_path / "job.yaml")
    assert name == "n" or "# TODO: left out: " in text


def test_a_form_that_cannot_be_mended_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    script = PLAIN.replace('"k", "k.cl", n', '"k", "k.cl", "gone"')
    (tmp_path / "k.cl").write_text(SCALE)
    (tmp_path / "tune.py").write_text(script)
    result = CliRunner().invoke(app, ["init", str(tmp_path / "tune.py"), "-o", str(tmp_path / "job.yaml")])
    assert isinstance(result.exception, InvalidInput)
    assert "init cannot write this as a job: kernel.launch.grid" in str(result.exception)
    assert not (tmp_path / "job.yaml").exists()
