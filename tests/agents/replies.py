"""Replies as a model might write them; all were written for these tests by hand."""

import json
from typing import Any

SPLIT_SOURCE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  const int step = get_global_size(0) * CHUNK;
  for (int base = get_global_id(0) * CHUNK; base < n; base += step)
    for (int k = 0; k < CHUNK; ++k)
      if (base + k < n) y[base + k] = 2.0f * x[base + k];
}
"""
CHEAT_SOURCE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  const int part = SKIP ? n / SKIP : n;
  for (int i = get_global_id(0); i < part; i += get_global_size(0)) y[i] = 2.0f * x[i];
}
"""
WRONG_SOURCE = SPLIT_SOURCE.replace("2.0f", "2.5f")
BROKEN_SOURCE = SPLIT_SOURCE.replace("const int step =", "const int step = undeclared +")


def template(source: str = SPLIT_SOURCE, **changes: Any) -> dict[str, Any]:
    """A template by source: elements of a thread become a parameter."""
    fields: dict[str, Any] = {
        "source": source,
        "parameters": [{"name": "CHUNK", "values": [1, 2, 4], "default": 1, "meaning": "elements"}],
        "constraints": [{"expression": "BLOCK * CHUNK <= 512", "reason": "small blocks of work"}],
        "reasoning": "more work for a thread",
    }
    return fields | changes


CHEAT = template(
    CHEAT_SOURCE,
    parameters=[{"name": "SKIP", "values": [0, 2, 8], "default": 0}],
    constraints=[],
    reasoning="skip what nobody looks at",
)


def as_text(answer: dict[str, Any]) -> str:
    """The answer as JSON."""
    return json.dumps(answer)


def as_markdown(answer: dict[str, Any]) -> str:
    """The answer as Markdown: its source, and the rest as JSON."""
    rest = {name: value for name, value in answer.items() if name != "source"}
    return f"```opencl\n{answer['source']}```\n\n```json\n{json.dumps(rest, indent=1)}\n```"
