"""`init` for Triton files: what the file says is in the job, and what it does not say is marked."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extensions.scaffold.test_init_command import ran
from warpsmith.errors import InvalidInput
from warpsmith.extensions.triton.scaffold import written as triton_scaffold

ROWS = """
import torch
import triton
import triton.language as tl

raise SystemExit("this file is never run")


@triton.jit
def halved(x):
    return x * 0.5


@triton.jit
def norm_rows(out_ptr, in_ptr, weight_ptr, in_row_stride, out_row_stride, n_cols, eps,
              BLOCK: tl.constexpr, SHIFT: tl.constexpr = 0):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(in_ptr + row * in_row_stride + cols, mask=inside, other=0.0)
    w = tl.load(weight_ptr + cols, mask=inside)
    x = halved(x / tl.sqrt(tl.sum(x * x, 0) / n_cols + eps))
    tl.store(out_ptr + row * out_row_stride + cols, x * w, mask=inside)


def norm(x, weight, eps=1e-6):
    *lead, width = x.shape
    flat = x.reshape(-1, width)
    rows, width = flat.shape
    out = torch.empty_like(flat, dtype=torch.float32)
    norm_rows[(rows,)](out, flat, weight, flat.stride(0), out.stride(0), width, eps,
                       BLOCK=triton.next_power_of_2(width), num_warps=8)
    return out
"""

MATMUL = """
import torch
import triton
import triton.language as tl


def keep_small(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["TILE_K"] <= named_args["K"]]


@triton.autotune(
    [triton.Config({"TILE_M": m, "TILE_N": 64, "TILE_K": k}, num_warps=4, num_stages=s)
     for m in (128, 64) for k in (32, 64) for s in (3, 2)],
    key=["M", "N", "K"], prune_configs_by={"early_config_prune": keep_small})
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["TILE_K"] == 0})
@triton.jit
def product(x_ptr, y_ptr, z_ptr, M, N, K, stride_xm, stride_xk, stride_yk, stride_yn, stride_zm, stride_zn,
            TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, EVEN_K: tl.constexpr,
            acc_type: tl.constexpr, RELU: tl.constexpr):
    rm = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    rn = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    rk = tl.arange(0, TILE_K)
    x = x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk
    y = y_ptr + rk[:, None] * stride_yk + rn[None, :] * stride_yn
    acc = tl.zeros((TILE_M, TILE_N), dtype=acc_type)
    for k in range(0, K, TILE_K):
        acc += tl.dot(tl.load(x), tl.load(y))
        x += TILE_K * stride_xk
        y += TILE_K * stride_yk
    z = z_ptr + rm[:, None] * stride_zm + rn[None, :] * stride_zn
    tl.store(z, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def multiply(a, b, activation="relu"):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    grid = lambda META: (triton.cdiv(M, META["TILE_M"]), triton.cdiv(N, META["TILE_N"]))
    product[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
                  c.stride(0), c.stride(1), acc_type=tl.float32, RELU=activation)
    return c
"""

ALONE = """
import triton
import triton.language as tl


@triton.jit
def gather(src, row_ids, dst, count, scale, BLOCK_N: tl.constexpr, HAS_SCALE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < count
    rows = tl.load(row_ids + at, mask=inside)
    tl.store(dst + at, tl.load(src + rows, mask=inside) * scale, mask=inside)
"""


def job(tmp_path: Path, text: str, entry: str | None = None) -> tuple[dict[str, Any], str]:
    """The job of a file's kernel, and its text."""
    (tmp_path / "kernels.py").write_text(text)
    found = triton_scaffold(tmp_path / "kernels.py", tmp_path / "kernels.yaml", entry)
    return yaml.safe_load(found), found


def argument(found: dict[str, Any], name: str) -> dict[str, Any]:
    """An argument of a job without its name."""
    [only] = [a for a in found["kernel"]["arguments"] if a["name"] == name]
    return {key: value for key, value in only.items() if key != "name"}


def test_a_tuned_product_with_its_host_code_is_nearly_whole(tmp_path: Path) -> None:
    found, text = job(tmp_path, MATMUL)
    kernel = found["kernel"]
    assert (kernel["backend"], kernel["source_file"], kernel["entry"]) == ("triton", "kernels.py", "product")
    assert argument(found, "x_ptr") == {"dtype": "float16", "role": "input", "shape": ["M", "K"]}
    assert argument(found, "y_ptr") == {"dtype": "float16", "role": "input", "shape": ["K", "N"]}
    assert argument(found, "z_ptr") == {"dtype": "float16", "role": "output", "shape": ["M", "N"]}
    assert [argument(found, f"stride_{s}")["value"] for s in ("xm", "xk", "yk", "yn")] == ["K", 1, "N", 1]
    assert kernel["constexprs"] == {
        "EVEN_K": "K % TILE_K == 0",
        "acc_type": "tl.float32",
        "RELU": "'relu'",
    }
    assert kernel["launch"] == {"grid": ["ceil_div(M, TILE_M)", "ceil_div(N, TILE_N)"]}
    assert found["parameters"] == [
        {"name": "TILE_M", "values": [64, 128], "default": 128},
        {"name": "TILE_N", "values": [64]},
        {"name": "TILE_K", "values": [32, 64]},
        {"name": "num_warps", "values": [4]},
        {"name": "num_stages", "values": [2, 3], "default": 3},
    ]
    assert [c["expression"] for c in found["constraints"]] == ["TILE_K <= K"]
    assert set(found["workloads"][0]["dimensions"]) == {"M", "N", "K"}
    marked = [row.split("#")[0].split("name: ")[-1].strip() for row in text.splitlines()[2:] if "TODO" in row]
    assert [row.split(",")[0].split(":")[0] for row in marked] == ["x_ptr", "y_ptr", "RELU", "- dimensions"]


def test_a_row_kernel_follows_views_and_the_file_is_not_run(tmp_path: Path) -> None:
    found, _ = job(tmp_path, ROWS)
    assert found["kernel"]["entry"] == "norm_rows"
    assert argument(found, "out_ptr") == {"dtype": "float32", "role": "output", "shape": ["rows", "n_cols"]}
    assert argument(found, "in_ptr")["shape"] == ["rows", "n_cols"]
    assert argument(found, "weight_ptr")["shape"] == ["n_cols"]
    assert argument(found, "in_row_stride")["value"] == "n_cols"
    assert argument(found, "eps")["dtype"] == "float32"
    assert found["kernel"]["constexprs"] == {"BLOCK": "next_pow2(n_cols)"}
    assert found["kernel"]["launch"]["grid"] == ["rows"]
    assert found["parameters"] == [{"name": "num_warps", "values": [2, 4, 8], "default": 8}]


def test_without_host_code_what_is_guessed_is_marked(tmp_path: Path) -> None:
    found, text = job(tmp_path, ALONE)
    assert argument(found, "row_ids") == {"dtype": "int32", "role": "input", "shape": ["count"]}
    assert argument(found, "dst")["role"] == "output"
    assert argument(found, "count")["dtype"] == "int32"
    assert argument(found, "scale")["dtype"] == "float32"
    assert found["parameters"][0] == {"name": "BLOCK_N", "values": [16, 32, 64, 128, 256], "default": 64}
    rows = {row.strip().split(",")[0]: row for row in text.splitlines()}
    for begin in ("- {name: src", "- {name: row_ids", "- {name: dst", "- {name: scale", "- {name: BLOCK_N"):
        assert "TODO" in rows[begin]
    assert "TODO" in next(row for row in text.splitlines() if "grid:" in row)
    assert "TODO" in next(row for row in text.splitlines() if "HAS_SCALE:" in row)


def test_of_several_kernels_one_is_named(tmp_path: Path) -> None:
    both = ROWS + ALONE
    with pytest.raises(InvalidInput) as caught:
        job(tmp_path, both)
    assert caught.value.field == "--entry"
    assert caught.value.message == "kernels.py defines 2 kernels; name one of norm_rows, gather"
    assert job(tmp_path, both, "gather")[0]["kernel"]["entry"] == "gather"
    with pytest.raises(InvalidInput, match="nothing: 0 such kernels"):
        job(tmp_path, both, "nothing")


def test_the_command_writes_the_job_and_refuses_what_is_of_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.py").write_text(ROWS)
    code, out, _ = ran(capsys, "init", "rows.py")
    assert (code, out) == (
        0,
        "wrote rows.yaml; fill in what is marked TODO, then: warpsmith tune rows.yaml\n",
    )
    assert yaml.safe_load(Path("rows.yaml").read_text())["kernel"]["backend"] == "triton"
    code, _, err = ran(capsys, "init", "rows.py", "-D", "N=1", "-o", "other.yaml")
    assert (code, Path("other.yaml").exists()) == (2, False)
    assert err.startswith("error: -D: is for CUDA and OpenCL")
