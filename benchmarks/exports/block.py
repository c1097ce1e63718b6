"""An export inside a program: silu_and_mul in a transformer block, and what a call costs the host.

    python -m benchmarks.exports.block --out OUT [--seconds 40]

Tunes the example with the rules, exports it as `torch`, `tvm-ffi` and `cpp`, and imports them. Each is
compared with PyTorch on tuned shapes, shapes between and beside them, and tensors at odd addresses. A
decoder layer of `transformers` runs with PyTorch's activation (A) and with the operator (B): eager, under a
captured CUDA graph and under `torch.compile`; A and B alternate, and the ratio has its interval. Host
microseconds are the time of a call in a loop that does not wait for the device. Needs a CUDA device,
PyTorch, transformers, apache-tvm-ffi and g++.
"""

import argparse
import ctypes
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.job_files import load
from benchmarks.production.service import embedded_service
from benchmarks.provenance import head, record_folder
from benchmarks.trust.record import first_device
from warpsmith.domain.device import Backend
from warpsmith.domain.job import AgentPolicy, Budget
from warpsmith.exports.write import Wanted, write_export
from warpsmith.http_models import JobResult
from warpsmith.measure.statistics import speedup_interval

TOLERANCE = 2e-3
PAIRS, REPEATS = 40, 20
CALLS = 2000
HIDDEN, INTERMEDIATE, HEADS = 4096, 14336, 32
TOKENS = (16, 256, 1024)
DIRECT = """
#include "silu_and_mul.hpp"
#include <chrono>
extern "C" double ns_a_call(void *stream, const void *in, void *out, int64_t tokens, int64_t hidden,
                            int calls) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; i++)
    if (silu_and_mul_ws::launch(stream, in, out, hidden, tokens)) return -1;
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count() / calls;
}
"""


def tuned(seconds: float, state: Path) -> JobResult:
    """The example tuned on the shapes of the block."""
    given = load("silu_and_mul", "cuda")
    job = given.model_copy(
        update={
            "workloads": tuple(
                given.workloads[0].model_copy(update={"dimensions": {"hidden": INTERMEDIATE, "tokens": t}})
                for t in TOKENS
            ),
            "budget": Budget(rounds=1, trials=100, seconds=seconds),
            "agents": AgentPolicy(provider="rules"),
        }
    )
    with embedded_service(state, {}) as client:
        id_ = client.submit(job).id
        while not client.status(id_).state.is_terminal:
            time.sleep(0.2)
        return client.result(id_)


def exported(result: JobResult, folder: Path) -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """The torch operator, the TVM FFI function and the library of direct launches."""
    for form in ("torch", "tvm-ffi", "cpp"):
        write_export(Wanted(result), form, folder / form)
    sys.path.insert(0, str(folder / "torch"))
    operator = importlib.import_module("silu_and_mul").silu_and_mul
    subprocess.run([sys.executable, "build.py"], cwd=folder / "tvm-ffi", check=True)
    tvm_ffi = importlib.import_module("tvm_ffi")
    function = tvm_ffi.load_module(str(folder / "tvm-ffi" / "silu_and_mul.so")).silu_and_mul
    (folder / "cpp" / "direct.cc").write_text(DIRECT)
    command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "direct.cc", "-ldl", "-o", "direct.so"]
    subprocess.run(command, cwd=folder / "cpp", check=True)
    direct = ctypes.CDLL(str(folder / "cpp" / "direct.so")).ns_a_call
    direct.restype = ctypes.c_double
    direct.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2 + [ctypes.c_int]
    return operator, function, direct


def plain(torch: Any, x: Any) -> Any:
    """PyTorch's own."""
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def compared(torch: Any, operator: Callable[..., Any], function: Callable[..., Any]) -> list[dict[str, Any]]:
    """Largest differences from PyTorch in single precision, by shape and place."""
    rows = []
    empty = torch.empty(0, 2 * INTERMEDIATE, device="cuda", dtype=torch.float16)
    function(empty, operator(empty, out=empty[:, :INTERMEDIATE].contiguous()))
    shapes = [(t, INTERMEDIATE) for t in (*TOKENS, 100, 512, 700, 17, 4096)] + [(7, 4099), (64, 4096), (1, 8)]
    for tokens, hidden in shapes:
        for shift in (0, 1):
            whole = torch.randn(tokens * 2 * hidden + shift, device="cuda", dtype=torch.float16)
            x = whole[shift:].view(tokens, 2 * hidden)
            want = plain(torch, x.float()).half()
            outs = [torch.full((tokens, hidden), torch.nan, device="cuda", dtype=torch.float16) for _ in "ab"]
            operator(x, out=outs[0])
            function(x, outs[1])
            worst = [float(((o - want).abs() / (1 + want.abs())).max()) for o in outs]
            rows.append(
                {"tokens": tokens, "hidden": hidden, "shift": shift, "torch": worst[0], "tvm": worst[1]}
            )
    return rows


def host_us(torch: Any, run: Callable[[], Any]) -> float:
    """Median microseconds of a call on the host."""
    run()
    torch.cuda.synchronize()
    found = []
    for _ in range(7):
        began = time.perf_counter()
        for _ in range(CALLS):
            run()
        found.append((time.perf_counter() - began) / CALLS * 1e6)
        torch.cuda.synchronize()
    return statistics.median(found)


def host_costs(torch: Any, operator: Any, function: Any, direct: Any) -> dict[str, float]:
    """Microseconds of a call by way, on 16 tokens."""
    x = torch.randn(16, 2 * INTERMEDIATE, device="cuda", dtype=torch.float16)
    out = torch.empty(16, INTERMEDIATE, device="cuda", dtype=torch.float16)
    raw = torch.ops.warpsmith.silu_and_mul
    stream = torch.cuda.current_stream().cuda_stream
    at = (stream, x.data_ptr(), out.data_ptr(), 16, INTERMEDIATE)
    runs = {
        "torch.ops": lambda: raw(x, out),
        "function, out given": lambda: operator(x, out=out),
        "function": lambda: operator(x, out=torch.empty_like(out)),
        "tvm-ffi": lambda: function(x, out),
        "PyTorch silu and mul": lambda: plain(torch, x),
    }
    found = {name: host_us(torch, run) for name, run in runs.items()}
    direct(*at, 100)
    torch.cuda.synchronize()
    found["direct launch"] = statistics.median(direct(*at, CALLS) / 1e3 for _ in range(7))
    torch.cuda.synchronize()
    return found


def layers(torch: Any, operator: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Two decoder layers with the same weights, one with the operator, and what both are called with."""
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    config = importlib.import_module("transformers").LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_attention_heads=HEADS,
        num_key_value_heads=8,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)

    class Merged(torch.nn.Module):  # type: ignore[misc]
        """The feed-forward part with gate and up in one product."""

        def __init__(self, given: Any, activate: Callable[..., Any]) -> None:
            super().__init__()
            self.both = torch.nn.Linear(
                HIDDEN, 2 * INTERMEDIATE, bias=False, device="cuda", dtype=torch.float16
            )
            self.both.weight.data.copy_(torch.cat([given.gate_proj.weight, given.up_proj.weight]))
            self.down, self.activate = given.down_proj, activate

        def forward(self, x: Any) -> Any:
            return self.down(self.activate(self.both(x)))

    one = llama.LlamaDecoderLayer(config, 0).half().cuda().eval()
    other = llama.LlamaDecoderLayer(config, 0).half().cuda().eval()
    other.load_state_dict(one.state_dict())
    one.mlp = Merged(one.mlp, lambda x: plain(torch, x))

    def ours(x: Any) -> Any:
        return operator(x, out=x.new_empty(*x.shape[:-1], INTERMEDIATE))

    other.mlp = Merged(other.mlp, ours)
    rotary = llama.LlamaRotaryEmbedding(config).cuda()
    return one, other, rotary


def block(torch: Any, operator: Callable[..., Any], tokens: int) -> dict[str, Any]:
    """Times of the whole layer with PyTorch's activation (A) and ours (B)."""
    one, other, rotary = layers(torch, operator)
    x = torch.randn(1, tokens, HIDDEN, device="cuda", dtype=torch.float16)
    places = torch.arange(tokens, device="cuda")[None]
    found: dict[str, Any] = {"tokens": tokens}
    with torch.inference_mode():
        embedded = rotary(x, places)

        def run(layer: Any) -> Any:
            out = layer(x, position_embeddings=embedded)
            return out[0] if isinstance(out, tuple) else out

        want, got = run(one), run(other)
        found["eager difference"] = float((want - got).abs().max())
        found["largest output"] = float(want.abs().max())
        ways = {"eager": (lambda: run(one), lambda: run(other))}
        graphs, outs = [], []
        for layer in (one, other):
            graph = torch.cuda.CUDAGraph()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                run(layer)
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(graph):
                outs.append(run(layer))
            graphs.append(graph)
        for graph in graphs:
            graph.replay()
        found["graph difference"] = float((outs[0] - outs[1]).abs().max())
        ways["graph"] = (graphs[0].replay, graphs[1].replay)
        made = [torch.compile(layer.mlp, fullgraph=True) for layer in (one, other)]
        h = torch.randn(1, tokens, HIDDEN, device="cuda", dtype=torch.float16)
        found["compiled difference"] = float((made[0](h) - made[1](h)).abs().max())
        ways["feed-forward part under torch.compile"] = (lambda: made[0](h), lambda: made[1](h))
        for name, (a, b) in ways.items():
            found[name] = paired(torch, a, b)
    return found


def paired(torch: Any, a: Callable[[], Any], b: Callable[[], Any]) -> dict[str, float]:
    """Microseconds of A and B in alternating blocks, and how many times faster B is, with its interval."""
    blocks: tuple[list[list[float]], list[list[float]]] = ([], [])
    for _ in range(5):
        a()
        b()
    for n in range(PAIRS):
        for side in (0, 1) if n % 2 else (1, 0):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            begin.record()
            for _ in range(REPEATS):
                (a, b)[side]()
            end.record()
            end.synchronize()
            blocks[side].append([begin.elapsed_time(end) * 1e3 / REPEATS])
    interval = speedup_interval(*blocks)
    medians = [statistics.median(s for block in side for s in block) for side in blocks]
    return {
        "a_us": medians[0],
        "b_us": medians[1],
        "speedup": interval.estimate,
        "low": interval.low,
        "high": interval.high,
    }


def page(record: dict[str, Any]) -> str:
    """The record in words."""
    worst = max(max(r["torch"], r["tvm"]) for r in record["compared"])
    lines = [
        "# An export inside a program",
        "",
        f"{record['device']}, driver {record['driver']}, PyTorch {record['torch']}, at {record['commit']}, "
        f"{record['when']}.",
        "",
        f"silu_and_mul (float16), tuned with the rules: {record['job']['speedup']:.2f}x, verified; "
        f"{len(record['job']['between'])} shapes between workloads passed.",
        f"Torch operator and TVM FFI against PyTorch, {len(record['compared'])} shapes and addresses: "
        f"largest difference {worst:.1e} of 1 + |value|.",
        "",
        "| host, µs a call | |",
        "|---|---|",
    ]
    lines += [f"| {name} | {us:.2f} |" for name, us in sorted(record["host_us"].items(), key=lambda e: e[1])]
    lines += [
        "",
        "A decoder layer of transformers (Llama, 4096, 14336): A with PyTorch's silu and mul, B with ours.",
        "",
        "| tokens | way | A, µs | B, µs | B is faster by [95 %] | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    differences = {"eager": "eager", "graph": "graph", "feed-forward part under torch.compile": "compiled"}
    for row in record["blocks"]:
        for way, of in differences.items():
            t = row[way]
            lines.append(
                f"| {row['tokens']} | {way} | {t['a_us']:.1f} | {t['b_us']:.1f} | "
                f"{t['speedup']:.3f}x [{t['low']:.3f}, {t['high']:.3f}] | {row[of + ' difference']:.1e} |"
            )
    return "\n".join([*lines, "", f"`{record['command']}`", ""])


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--out", type=record_folder, required=True)
    options = parser.parse_args()
    device = first_device(Backend.CUDA)
    torch = importlib.import_module("torch")
    with tempfile.TemporaryDirectory() as folder:
        result = tuned(options.seconds, Path(folder) / "state")
        operator, function, direct = exported(result, Path(folder))
        shown = "python -m benchmarks.exports.block " + " ".join(sys.argv[1:])
        record = head(device, shown) | {
            "torch": torch.__version__,
            "job": result.model_dump(mode="json", include={"speedup", "comparisons", "between", "seconds"}),
            "compared": compared(torch, operator, function),
            "host_us": host_costs(torch, operator, function, direct),
            "blocks": [block(torch, operator, tokens) for tokens in TOKENS],
        }
    worst = max(max(r["torch"], r["tvm"]) for r in record["compared"])
    (options.out / "block.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "block.md").write_text(page(record))
    print(page(record))
    return int(not worst <= TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
