"""`init` on scripts of Kernel Tuner: space, launch, arguments and sizes become a job."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warpsmith.cli.app import app
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.extensions.importers.kernel_tuner import read_script
from warpsmith.job_files.jobfile import load_job

ROOT = Path(__file__).parents[3]
KERNEL = """
#ifndef kernel_tuner
#define block_size_x 64
#endif
__global__ void scale(float *out, const float *in, float factor, int n) {
  for (int k = 0; k < tile; k++) {
    int i = (blockIdx.x * tile + k) * block_size_x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
  }
}
"""
SCRIPT = """
import numpy as np
from kernel_tuner import tune_kernel

def ready(n, kind=np.float32):
    return np.random.randn(n).astype(kind)

def tune(verbose=True):
    with open("scale.cu") as f:
        source = f.read()
    rows, columns = 300, 200
    size = rows * columns
    x = ready(size)
    args = [np.zeros_like(x), x, np.float32(2.5), np.int32(size)]
    params = dict(block_size_x=[32 * i for i in range(1, 4)])
    params["tile"] = [1, 2] + [4]
    options = {"grid_div_x": ["block_size_x", "tile"], "compiler_options": ["--use_fast_math", "-arch=sm_52"]}
    return tune_kernel("scale", source, size, args, params, verbose=verbose,
                       restrictions=[lambda p: p["block_size_x"] * p["tile"] > 32, "tile < 8"], **options)

if __name__ == "__main__":
    tune()
"""


def job_of(folder: Path, script: str, *options: str, kernel: str = KERNEL) -> Job:
    """The job that the command writes for a script beside `scale.cu`."""
    (folder / "scale.cu").write_text(kernel)
    (folder / "tune.py").write_text(script)
    result = CliRunner().invoke(
        app, ["init", str(folder / "tune.py"), "-o", str(folder / "job.yaml"), *options]
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return load_job(folder / "job.yaml")


def test_a_script_becomes_space_launch_arguments_and_sizes(tmp_path: Path) -> None:
    job = job_of(tmp_path, SCRIPT)
    assert job.kernel.entry == "scale"
    assert {p.name: p.values for p in job.parameters} == {"block_size_x": (32, 64, 96), "tile": (1, 2, 4)}
    assert {p.name: p.default for p in job.parameters} == {"block_size_x": 32, "tile": 2}
    assert [c.expression.text for c in job.constraints] == ["block_size_x * tile > 32", "tile < 8"]
    assert [d.dimensions for d in job.workloads] == [{"rows": 300, "columns": 200}]
    assert [e.text for e in job.kernel.launch.grid] == ["ceil_div(rows * columns, block_size_x * tile)"]
    assert [e.text for e in job.kernel.launch.block] == ["block_size_x"]
    out, given, factor, n = job.kernel.arguments
    assert [e.text for e in out.shape] == [e.text for e in given.shape] == ["rows * columns"]
    assert (out.role.value, given.role.value) == ("output", "input")
    assert factor.value is not None and factor.value.text == "2.5"
    assert n.value is not None and n.value.text == "rows * columns"
    assert set(job.kernel.options) == {
        "--use_fast_math", "-Dkernel_tuner=1", "-Dblock_size_y=1", "-Dblock_size_z=1",
    }  # fmt: skip
    assert (
        "Not taken over from tune.py: the compiler option '-arch=sm_52'."
        in (tmp_path / "job.yaml").read_text()
    )


def test_a_kernel_in_the_script_is_written_beside_the_job(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        '    with open("scale.cu") as f:\n        source = f.read()', f'    source = """{KERNEL}"""'
    )
    (tmp_path / "other").mkdir()
    job = job_of(tmp_path / "other", script)
    assert (tmp_path / "other" / "job.cu").read_text() == KERNEL
    assert job.kernel.text == KERNEL


def test_what_runs_to_be_known_is_named(tmp_path: Path) -> None:
    script = SCRIPT.replace('["block_size_x", "tile"]', "lambda p: p['tile']").replace(
        "restrictions=[lambda p:", "restrictions=[fits, lambda p:"
    )
    text = job_of(tmp_path, script) and (tmp_path / "job.yaml").read_text()
    assert "Not taken over from tune.py: grid_div_x (a function, line 17); grid is a guess." in text
    assert "Not taken over from tune.py: a restriction that is a function" in text
    assert "Not taken over from tune.py: verbose." in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def tune", "def tune(", "cannot be read as Python"),
        ('"scale"', "name()", "calls no tune_kernel with a kernel's name that can be read"),
        ("params = dict(", "params = made(", "tune_params is made while the script runs"),
        ("[1, 2] + [4]", "values()", "the values of tune_params['tile'] are made while it runs"),
        ('open("scale.cu")', 'open("other.cu")', "names other.cu as its kernel, and there is no"),
        (
            'open("scale.cu")',
            "open(path())",
            "give its file beside the script: warpsmith init KERNEL tune.py",
        ),
    ],
)
def test_a_script_that_says_too_little_says_what_is_missing(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    (tmp_path / "tune.py").write_text(SCRIPT.replace(old, new))
    (tmp_path / "scale.cu").write_text(KERNEL)
    with pytest.raises(InvalidInput, match=message.replace("(", r"\(").replace("[", r"\[")):
        read_script(tmp_path / "tune.py")


def test_of_several_kernels_one_is_named(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "return tune_kernel", 'tune_kernel("other", source, 1, [], {"b": [1]})\n    return tune_kernel'
    )
    (tmp_path / "tune.py").write_text(script)
    (tmp_path / "scale.cu").write_text(KERNEL)
    with pytest.raises(InvalidInput, match=r"tunes 2 kernels; name one of other, scale"):
        read_script(tmp_path / "tune.py")
    assert read_script(tmp_path / "tune.py", "scale").known.entry == "scale"


@pytest.mark.parametrize(
    "line",
    [
        "x = [[0] * 10**9] * 10**9",
        "x = 10 ** 10 ** 10",
        "x = [i for i in range(10**12) for j in range(10**12)]",
        "def f(n): return f(n) + f(n)\nx = f(1)",
        "x = 1 / 0",
        "x = ['a'][7]['b']",
        "x = " + "(" * 80 + "1" + ")" * 80,
    ],
)
def test_a_script_is_read_in_bounded_time_and_memory_and_never_run(tmp_path: Path, line: str) -> None:
    script = SCRIPT.replace("import numpy as np", f"open('ran', 'w')\nimport numpy as np\n{line}")
    (tmp_path / "tune.py").write_text(script)
    (tmp_path / "scale.cu").write_text(KERNEL)
    assert read_script(tmp_path / "tune.py").known.grid == ("ceil_div(rows * columns, block_size_x * tile)",)
    assert not (tmp_path / "ran").exists() and not Path("ran").exists()


def test_the_script_of_the_documents_needs_nothing_more(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "kernel-tuner.md").read_text()
    kernel, script = (re.search(rf"```{kind}\n(.*?)```", page, re.S) for kind in ("c", "python"))
    assert kernel is not None and script is not None
    (tmp_path / "matmul.cl").write_text(kernel.group(1))
    job = job_of(tmp_path, script.group(1))
    assert [dict(w.dimensions) for w in job.workloads] == [{"m": 96, "n": 128, "k": 160}]
    assert [[e.text for e in a.shape] for a in job.kernel.arguments[:3]] == [
        ["m", "k"],
        ["k", "n"],
        ["m", "n"],
    ]
    assert "# TODO: shape" not in (tmp_path / "job.yaml").read_text()
