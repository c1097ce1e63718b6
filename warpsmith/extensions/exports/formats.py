"""Writers of the formats of an export."""

import json
from functools import partial

from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports import cpp as cpp_files
from warpsmith.extensions.exports import flashinfer_bench as flashinfer_bench_files
from warpsmith.extensions.exports import hf_kernel as hf_kernel_files
from warpsmith.extensions.exports import sglang as sglang_files
from warpsmith.extensions.exports import torch_op
from warpsmith.extensions.exports import tvm_ffi as tvm_ffi_files
from warpsmith.extensions.exports.c_header import c_header
from warpsmith.extensions.exports.operator import Operator
from warpsmith.extensions.exports.rendering import rendered
from warpsmith.extensions.exports.tables import t4 as t4_files
from warpsmith.extensions.exports.tables.engine_table import engine_table
from warpsmith.extensions.exports.tables.found_rows import found_rows, mean_speedup
from warpsmith.extensions.exports.wanted import ExportRequest, Files, evidence
from warpsmith.report.shape_lookup import Lookup


def c(wanted: ExportRequest) -> Files:
    """A C header with the kernels and a dispatch over shapes.

    Raises:
        InvalidInput: the header cannot hold the job.
    """
    try:
        return {"dispatch.h": c_header(Lookup(wanted.result))}
    except ValueError as exc:
        raise InvalidInput("", str(exc)) from exc


def cpp(wanted: ExportRequest) -> Files:
    """A C++ header with an operator."""
    operator = wanted.operator
    return {f"{operator.name}.hpp": cpp_files.header(operator, wanted.other_device)}


def torch(wanted: ExportRequest) -> Files:
    """A Python package with a PyTorch operator."""
    operator = Operator(wanted.result, wanted.name, may_join=True)
    return torch_op.package(operator, wanted.other_device)


def tvm_ffi(wanted: ExportRequest) -> Files:
    """A module for the ABI of tvm-ffi."""
    return tvm_ffi_files.module(wanted.operator, wanted.other_device)


def flashinfer_bench(wanted: ExportRequest) -> Files:
    """A solution of FlashInfer-Bench."""
    return flashinfer_bench_files.solution(wanted.operator, wanted.other_device)


def hf_kernel(wanted: ExportRequest) -> Files:
    """A tree of Hugging Face's kernel builder."""
    return hf_kernel_files.tree(wanted.operator, wanted.other_device)


def sglang(wanted: ExportRequest) -> Files:
    """A kernel of SGLang."""
    return sglang_files.tree(wanted.operator, wanted.other_device)


def t4(wanted: ExportRequest) -> Files:
    """Trials in the T4 format."""
    return t4_files.files(wanted.result, wanted.trials)


def _engine_table(wanted: ExportRequest, form: str) -> Files:
    results = (wanted.result, *wanted.more)
    table = engine_table(wanted.result, form, wanted.table, wanted.more)
    others = [json.loads(evidence(result)) for result in wanted.more]
    shown = evidence(wanted.result, table=table.evidence(), **({"more": others} if others else {}))
    files = {table.path: table.text(), "evidence.json": shown}
    if "BLOCK_SIZE_M" in table.engine.needed:
        rows = list(found_rows(results, batch=table.batch))
        draws = (a.draw.routing for a in wanted.result.job.kernel.declared if a.draw and a.draw.routing)
        facts = {"result": wanted.result, "rows": rows, "mean": mean_speedup(rows), "table": table}
        facts |= {"skew": next((routing.skew for routing in draws), None)}
        files["pull-request.md"] = rendered("table_request.md.jinja", facts)
    return files


vllm_config = partial(_engine_table, form="vllm-config")
sglang_config = partial(_engine_table, form="sglang-config")
hf_config = partial(_engine_table, form="hf-config")
