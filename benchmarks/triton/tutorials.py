"""Triton's tutorials: what their own `@triton.autotune` list finds, and what a job finds from there.

    python -m benchmarks.triton.tutorials --sources FOLDER --out FOLDER [--only NAME ...] [--seconds S]

First Triton itself tunes over the tutorial's list (two of them have a heuristic), with its own timing.
What it picks is the default of a job, whose verification then compares the two with an interval.
"""

import argparse
import importlib.util
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.production.run import tuned
from benchmarks.production.service import embedded_service
from benchmarks.provenance import head, record_folder
from benchmarks.trust.record import first_device
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import ChildDied
from warpsmith.extensions.triton.backend.module import kernel_module

Configuration = dict[str, int]
OPTIONS = ("num_warps", "num_stages")


@dataclass(frozen=True)
class Tutorial:
    """One kernel with its launch."""

    name: str
    file: str
    entry: str
    dimensions: dict[str, int]
    arguments: tuple[dict[str, Any], ...]
    grid: tuple[str, ...]
    own: Callable[[Path], Sequence[Configuration]]
    """The tutorial's list of configurations; of one, what its heuristic says."""
    values: dict[str, list[int]]
    """What the job searches."""
    constexprs: dict[str, Any]


def _scalar(name: str, value: str | int | float, dtype: str = "int32") -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "role": "scalar", "value": value}


def _buffer(name: str, role: str, shape: Sequence[str], dtype: str = "float16") -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "role": role, "shape": list(shape)}


def _matmul_list(sources: Path) -> list[Configuration]:
    """The list for NVIDIA devices, read with Triton itself."""
    path = sources / "matmul_configs.py"
    spec = importlib.util.spec_from_file_location("matmul_configs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [{**c.kwargs, "num_warps": c.num_warps, "num_stages": c.num_stages} for c in module.configs]


def _attention_list(_: Path) -> list[Configuration]:
    """The list of the tutorial: 64 or 128 rows, 32 or 64 columns; eight warps for no small tile."""
    names = ("BLOCK_M", "BLOCK_N", "num_stages", "num_warps")
    every = (
        dict(zip(names, c, strict=True)) for c in itertools.product([64, 128], [32, 64], [3, 4, 7], [4, 8])
    )
    return [c for c in every if c["BLOCK_M"] * c["BLOCK_N"] >= 128 * 128 or c["num_warps"] != 8]


_ATTENTION = ["Z", "H", "N_CTX", "HEAD_DIM"]
_STRIDES = ("H * N_CTX * HEAD_DIM", "N_CTX * HEAD_DIM", "HEAD_DIM", "1")

TUTORIALS = (
    Tutorial(
        "softmax",
        "softmax.py",
        "softmax_kernel",
        {"rows": 4096, "cols": 6144},
        (
            _buffer("output_ptr", "output", ["rows", "cols"], "float32"),
            _buffer("input_ptr", "input", ["rows", "cols"], "float32"),
            _scalar("input_row_stride", "cols"),
            _scalar("output_row_stride", "cols"),
            _scalar("n_cols", "cols"),
        ),
        ("rows",),
        lambda _: [{"num_warps": 16, "num_stages": 3}],
        {"num_warps": [1, 2, 4, 8, 16, 32], "num_stages": [1, 2, 3], "maxnreg": [0, 32, 64, 128]},
        {"BLOCK_SIZE": "next_pow2(cols)"},
    ),
    Tutorial(
        "layer_norm",
        "layer_norm.py",
        "_layer_norm_fwd_fused",
        {"rows": 4096, "cols": 6144},
        (
            _buffer("X", "input", ["rows", "cols"]),
            _buffer("Y", "output", ["rows", "cols"]),
            _buffer("W", "input", ["cols"]),
            _buffer("B", "input", ["cols"]),
            _buffer("Mean", "output", ["rows"], "float32"),
            _buffer("Rstd", "output", ["rows"], "float32"),
            _scalar("stride", "cols"),
            _scalar("N", "cols"),
            _scalar("eps", 1e-5, "float32"),
        ),
        ("rows",),
        lambda _: [{"BLOCK_SIZE": 8192, "num_warps": 8, "num_stages": 3}],
        {
            "BLOCK_SIZE": [512, 1024, 2048, 4096, 8192],
            "num_warps": [1, 2, 4, 8, 16],
            "num_stages": [1, 2, 3, 4],
        },
        {},
    ),
    Tutorial(
        "matmul",
        "matmul.py",
        "matmul_kernel",
        {"M": 4096, "N": 4096, "K": 4096},
        (
            _buffer("a_ptr", "input", ["M", "K"]),
            _buffer("b_ptr", "input", ["K", "N"]),
            _buffer("c_ptr", "output", ["M", "N"]),
            *(_scalar(n, n) for n in ("M", "N", "K")),
            _scalar("stride_am", "K"),
            _scalar("stride_ak", 1),
            _scalar("stride_bk", "N"),
            _scalar("stride_bn", 1),
            _scalar("stride_cm", "N"),
            _scalar("stride_cn", 1),
        ),
        ("ceil_div(M, BLOCK_M) * ceil_div(N, BLOCK_N)",),
        _matmul_list,
        {
            "BLOCK_M": [32, 64, 128, 256],
            "BLOCK_N": [32, 64, 128, 256],
            "BLOCK_K": [32, 64, 128],
            "GROUP_M": [4, 8, 16],
            "num_warps": [2, 4, 8],
            "num_stages": [2, 3, 4, 5],
        },
        {"ACTIVATION": "''", "ENABLE_BUFFER_OPS_ASSUMES": False},
    ),
    Tutorial(
        "attention",
        "attention.py",
        "_attn_fwd",
        {"Z": 4, "H": 32, "N_CTX": 1024, "HEAD_DIM": 64},
        (
            *(_buffer(n, "input", _ATTENTION) for n in ("Q", "K", "V")),
            _scalar("sm_scale", 0.125, "float32"),
            _buffer("M", "output", ["Z", "H", "N_CTX"], "float32"),
            _buffer("Out", "output", _ATTENTION),
            *(
                _scalar(f"stride_{t}{a}", s)
                for t, axes in (("q", "zhmk"), ("k", "zhnk"), ("v", "zhkn"), ("o", "zhmn"))
                for a, s in zip(axes, _STRIDES, strict=True)
            ),
            *(_scalar(n, n) for n in ("Z", "H", "N_CTX")),
        ),
        ("ceil_div(N_CTX, BLOCK_M)", "Z * H"),
        _attention_list,
        {
            "BLOCK_M": [64, 128],
            "BLOCK_N": [16, 32, 64],
            "num_warps": [4, 8],
            "num_stages": [1, 2, 3, 4, 5, 7],
        },
        {"HEAD_DIM": "HEAD_DIM", "STAGE": 3},
    ),
)


def job_of(tutorial: Tutorial, source: str, default: Configuration, seconds: float) -> Job:
    """The job that begins with `default`."""
    first = {"maxnreg": 0} | default
    parameters = [
        {"name": n, "values": sorted({*v, first.get(n, v[0])}), "default": first.get(n, v[0])}
        for n, v in tutorial.values.items()
    ]
    dimensions = tutorial.dimensions
    fixed = {n: v for n, v in tutorial.constexprs.items() if n not in dimensions}
    fixed |= {n: dimensions[n] for n in tutorial.constexprs if n in dimensions}
    return Job.model_validate(
        {
            "name": f"triton-{tutorial.name.replace('_', '-')}",
            "kernel": {
                "backend": "triton",
                "source": kernel_module(source, tutorial.entry),
                "entry": tutorial.entry,
                "arguments": list(tutorial.arguments),
                "constexprs": fixed,
                "launch": {"grid": list(tutorial.grid)},
            },
            "parameters": parameters,
            "workloads": [{"dimensions": dimensions}],
            "budget": {"seconds": seconds, "trials": 2000},
            "rewrite": {"enabled": False},
        }
    )


def autotuned(tutorial: Tutorial, source: str, sources: Path) -> dict[str, Any]:
    """What Triton's own tuner picks from the tutorial's list: seconds, evaluations, configuration."""
    import torch
    import triton

    listed = list(tutorial.own(sources))
    if len(listed) == 1:
        return {"list": 1, "seconds": 0.0, "picked": listed[0]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{tutorial.name}_kernel.py"
        path.write_text(kernel_module(source, tutorial.entry))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        configs = [
            triton.Config({n: v for n, v in c.items() if n not in OPTIONS}, **{n: c[n] for n in OPTIONS})
            for c in listed
        ]
        function = triton.autotune(configs=configs, key=[])(getattr(module, tutorial.entry))
        job = job_of(tutorial, source, listed[0], 1.0)
        scope = job.workloads[0].scope()
        given = []
        for argument in job.kernel.arguments:
            if argument.shape:
                shape = [e.integer(scope) for e in argument.shape]
                given.append(torch.randn(shape, device="cuda").to(getattr(torch, argument.dtype.value)))
            else:
                assert argument.value is not None
                given.append(argument.value.evaluate(scope))
        fixed = {n: "" if v == "''" else v for n, v in job.kernel.constexprs.items() if n not in OPTIONS}

        def grid(meta: dict[str, Any]) -> tuple[int, ...]:
            return tuple(e.integer(scope | meta) for e in job.kernel.launch.grid)

        began_s = time.monotonic()
        function[grid](*given, **fixed)
        torch.cuda.synchronize()
        seconds = time.monotonic() - began_s
        best = function.best_config
        return {
            "list": len(listed),
            "seconds": round(seconds, 1),
            "picked": {**best.kwargs, "num_warps": best.num_warps, "num_stages": best.num_stages},
        }


def main() -> int:
    """Run them, and write `tutorials.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=[t.name for t in TUTORIALS])
    parser.add_argument("--seconds", type=float, default=45.0, help="budget of each job")
    parser.add_argument("--out", type=record_folder, required=True)
    asked = parser.parse_args()
    try:
        device = first_device(Backend.CUDA)
    except ChildDied as exc:
        raise SystemExit(str(exc)) from exc
    chosen = [t for t in TUTORIALS if not asked.only or t.name in asked.only]
    record = head(device, "python -m benchmarks.triton.tutorials " + " ".join(sys.argv[1:])) | {"rows": []}
    own = {t.name: autotuned(t, (asked.sources / t.file).read_text(), asked.sources) for t in chosen}
    with tempfile.TemporaryDirectory() as folder, embedded_service(Path(folder)) as client:
        for tutorial in chosen:
            source = (asked.sources / tutorial.file).read_text()
            job = job_of(tutorial, source, own[tutorial.name]["picked"], asked.seconds)
            row = {"kernel": tutorial.name, "workload": tutorial.dimensions, "autotune": own[tutorial.name]}
            row["job"] = tuned(client, job, Path(folder))
            record["rows"].append(row)
            print(json.dumps(row), flush=True)
            (asked.out / "tutorials.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
