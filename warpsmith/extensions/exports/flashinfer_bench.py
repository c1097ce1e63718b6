"""A solution of FlashInfer-Bench (0.1): the header and its binding, as one JSON file."""

import json

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.extensions.exports.cpp import header
from warpsmith.extensions.exports.operator import Operator
from warpsmith.extensions.exports.tvm_ffi import source


def solution(operator: Operator, other_device: str) -> dict[str, str]:
    """`solution.json`; its definition has the job's name, and its function takes inputs, then outputs."""
    name = operator.name
    text = source(operator, "Solution.run", "run", ordered(operator))
    job, result = operator.lookup.job, operator.result
    gained = f"{result.speedup:.2f}x verified" if result.speedup else "no gain"
    made = {
        "name": f"{name}_warpsmith_{operator.digest}",
        "definition": job.name or name,
        "author": "warpsmith",
        "spec": {
            "language": "cuda",
            "target_hardware": [result.device],
            "entry_point": "main.cu::run",
            "dependencies": [],
            "destination_passing_style": True,
            "binding": "tvm-ffi",
        },
        "sources": [
            {"path": "main.cu", "content": text},
            {"path": f"{name}.hpp", "content": header(operator, other_device)},
        ],
        "description": f"Warpsmith {result.warpsmith_version}, job {result.id}: {gained} on {result.device}.",
    }
    return {"solution.json": json.dumps(made, indent=1) + "\n"}


def ordered(operator: Operator) -> list[Argument]:
    """Names of the function's parameters, with outputs last."""
    first = [a for a in operator.given if a.role is not Role.OUTPUT]
    return [*first, *operator.outputs]
