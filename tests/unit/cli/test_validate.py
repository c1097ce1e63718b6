"""`warpsmith validate`: what it prints, for people and for programs, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from warpsmith.cli import main
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job

FIELDS: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)
CUDA_SOURCE = """
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""


def ran(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `warpsmith validate`."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["validate", *(str(a) for a in arguments)])
    captured = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, captured.out, captured.err


def written(folder: Path, **changes: Any) -> Path:
    """The scale job with changed fields, as YAML."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(FIELDS | changes, sort_keys=False))
    return path


def test_a_valid_job_is_described_with_its_rules_and_configurations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, constraints=[{"expression": "BLOCK * PER <= 256"}])
    code, out, err = ran(capsys, path)
    assert (code, err) == (0, "")
    (short,) = [line for line in out.splitlines() if line.startswith("  rules that do not: ")]
    assert short.endswith(" (--rules lists why)") and "lift_constants" not in out
    code, out, err = ran(capsys, path, "--rules")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:5] == [
        "scale: opencl kernel scale, valid",
        "  workload n=4096 (weight 1)",
        "  workload n=1001 (weight 1)",
        "  reference: ran, with n=1001",
        "  configurations of its own tunables: 10",
    ]
    applies = next(n for n, line in enumerate(lines) if line.startswith("  rules that apply: "))
    declines = next(n for n, line in enumerate(lines) if line.startswith("  rules that do not: "))
    assert any(" WS_" in line and " values)" in line for line in lines[applies:declines])
    assert lines[applies] == f"  rules that apply: {declines - applies - 1}"
    assert any(line.startswith("    lift_constants: ") for line in lines[declines:])
    assert lines[-1].startswith("  configurations of the template: ")
    assert int(lines[-1].rsplit(" ", 1)[1]) > 10


def test_limits_of_a_device_at_hand_count_in_constraints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, constraints=[{"expression": "BLOCK * 100000 <= device.max_threads_per_block"}])
    code, _, err = ran(capsys, path)
    assert code == 2
    assert "constraints.0: no configuration meets it on any workload: BLOCK * 100000 <= device" in err
    path = written(tmp_path, constraints=[{"expression": "PER * device.warp_size <= 4 * device.warp_size"}])
    assert "  configurations of its own tunables: 12\n" in ran(capsys, path)[1]


def test_errors_and_warnings_come_in_the_order_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(
        tmp_path,
        kernel=FIELDS["kernel"] | {"entry": "skale", "options": ["-I/x"]},
        tolerances={"y": {"rtol": 0, "atol": 0}},
    )
    path.write_text(path.read_text() + "seed: 1  # TODO: another one\n# TODO\n# TODO: more\n")
    code, out, err = ran(capsys, path)
    assert (code, out) == (2, "")
    found = [line.split(": ", 1) for line in err.splitlines()]
    assert [severity for severity, _ in found] == ["error", "error", "warning", "warning"]
    numbers = [int(rest.removeprefix(f"{path}:").split(":", 1)[0]) for _, rest in found]
    assert numbers == sorted(numbers)
    assert "no kernel 'skale' in the source; found scale; did you mean 'scale'?" in err
    last = len(path.read_text().splitlines())
    words = "TODO is left: another one; fill it in and remove the mark; TODO is left in lines"
    assert f"{words} {last - 1}, {last} too" in err and err.count("fill it in") == 1


def test_warnings_alone_end_well_and_describe_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, written(tmp_path, tolerances={"y": {"rtol": 0, "atol": 0}}))
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("warning: ")
    assert out.startswith("scale: opencl kernel scale, valid\n")


def test_a_mark_in_a_source_is_none_of_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.yaml"
    text = yaml.safe_dump(FIELDS | {"kernel": FIELDS["kernel"] | {"source": "SOURCE"}}, sort_keys=False)
    source = "// TODO: faster\n" + SCALE_SOURCE.strip()
    block = "source: |\n" + "".join(f"    {line}\n" for line in source.splitlines())
    path.write_text(text.replace("source: SOURCE\n", block))
    code, _, err = ran(capsys, path)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("name", ["job.yaml", "job.json"])
def test_programs_get_everything_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / name
    fields = FIELDS | {"kernel": FIELDS["kernel"] | {"options": ["-I/x"]}}
    path.write_text(json.dumps(fields, indent=1))
    code, out, err = ran(capsys, path, "--json")
    assert (code, err) == (2, "")
    held = json.loads(out)
    (found,) = held["findings"]
    assert (held["valid"], held["name"]) == (False, "scale")
    assert (found["severity"], found["field"]) == ("error", "kernel.options.0")
    assert path.read_text().splitlines()[found["line"] - 1].strip() == '"-I/x"'
    path.write_text('{\n"name" 1}')
    code, out, _ = ran(capsys, path, "--json")
    assert code == 2
    assert json.loads(out)["findings"][0]["line"] == 2


def test_the_kernel_and_its_template_compile_and_it_is_launched_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(capsys, written(tmp_path), "--compile")
    assert (code, err) == (0, "")
    assert ", and so is its template\n" in out
    assert "  launched once, on the smallest workload: right\n" in out


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("i < n; i", "i < n - 10; i", "kernel.launch.grid", "10 of 1001 elements were never written"),
        ("2.0f * x[i]", "sqrt(x[i])", "reference.source", "the kernel gives NaN or infinity in"),
        ("2.0f * x[i]", "18.0f * x[i]", "reference.source", "is 9 times the reference's everywhere"),
    ],
)
def test_a_launch_shows_what_is_wrong_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, field: str, words: str
) -> None:
    kernel = FIELDS["kernel"] | {"source": SCALE_SOURCE.replace(old, new)}
    code, _, err = ran(capsys, written(tmp_path, kernel=kernel), "--compile")
    assert code == 2
    assert f": {field}: " in err
    assert words in err


def test_a_launch_shows_a_draw_outside_of_a_domain_at_its_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = FIELDS["kernel"] | {"source": SCALE_SOURCE.replace("2.0f * x[i]", "log(x[i])")}
    path = written(tmp_path, kernel=kernel, reference={"kind": "kernel"})
    code, _, err = ran(capsys, path, "--compile")
    assert code == 2
    assert f"{path}:{path.read_text().splitlines().index('  - name: x') + 1}: kernel.arguments.0.draw" in err
    assert "untestable: y is NaN in" in err


def test_what_a_compiler_says_is_placed_in_the_job_where_the_source_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SCALE_SOURCE.strip().replace("2.0f", "twice")
    path = tmp_path / "job.yaml"
    text = yaml.safe_dump(FIELDS | {"kernel": FIELDS["kernel"] | {"source": "SOURCE"}}, sort_keys=False)
    block = "source: |\n" + "".join(f"    {line}\n" for line in broken.splitlines())
    path.write_text(text.replace("source: SOURCE\n", block))
    line = next(n for n, t in enumerate(path.read_text().splitlines(), 1) if "twice" in t)
    code, _, err = ran(capsys, path, "--compile")
    assert code == 2
    assert err.startswith(f"error: {path}:{line}: kernel.source: does not compile: ")
    assert "twice" in err


def test_a_macro_that_the_host_would_define_comes_with_how_to_give_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SCALE_SOURCE.replace("2.0f", "FACTOR")
    path = written(tmp_path, kernel=FIELDS["kernel"] | {"source": source})
    code, _, err = ran(capsys, path, "--compile")
    assert code == 2
    assert "add -DFACTOR=... to kernel.options, or a parameter of that name" in err
    path = written(tmp_path, kernel=FIELDS["kernel"] | {"source": source, "options": ["-DFACTOR=2.0f"]})
    assert ran(capsys, path, "--compile")[0] == 0


def test_cuda_is_compiled_without_a_gpu_or_the_reason_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = FIELDS["kernel"] | {"backend": "cuda", "source": CUDA_SOURCE}
    path = written(tmp_path, kernel=kernel, parameters=FIELDS["parameters"][:1])
    path.write_text(path.read_text().replace("BLOCK * PER", "BLOCK"))
    code, out, err = ran(capsys, path, "--compile")
    assert code == 0, err
    assert "compiled for " in out or "not compiled: " in err
    path.write_text(path.read_text().replace("2.0f", "twice"))
    code, _, err = ran(capsys, path, "--compile")
    assert ("twice" in err and code == 2) or "not compiled: " in err


def test_a_reference_that_needs_real_sizes_is_run_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        "def reference(inputs, dims):\n    assert dims['n'] == 1000000\n    return {'y': 2.0 * inputs['x']}\n"
    )
    path = written(
        tmp_path,
        workloads=[{"dimensions": {"n": 1000000}}],
        reference={"kind": "numpy", "source": source},
    )
    code, out, err = ran(capsys, path)
    assert (code, err) == (0, "")
    assert "reference: ran, with n=1000000\n" in out


def test_a_reference_that_fails_on_smaller_sizes_only_where_real_ones_are_too_large_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "def reference(inputs, dims):\n    return {'y': inputs['x'][:1]}\n"
    path = written(
        tmp_path,
        workloads=[{"dimensions": {"n": 50_000_000}}],
        reference={"kind": "numpy", "source": source},
    )
    code, _, err = ran(capsys, path)
    assert code == 0
    assert err.startswith("warning: ")
    assert "'y' has shape (1,), not (65536,)" in err
