"""The example job in the API's description; a test submits it."""

from typing import Any

from fastapi.openapi.models import Example

JOB_EXAMPLE: dict[str, Any] = {
    "name": "scale",
    "kernel": {
        "backend": "opencl",
        "source": (
            "__kernel void scale(__global const float* x, __global float* y, const int n) {\n"
            "  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];\n"
            "}\n"
        ),
        "entry": "scale",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": ["ceil_div(n, BLOCK)"], "block": ["BLOCK"]},
    },
    "workloads": [{"dimensions": {"n": 65536}}],
    "parameters": [{"name": "BLOCK", "values": [32, 64, 128, 256], "default": 64}],
    "budget": {"trials": 20, "seconds": 60},
}

EXAMPLES: dict[str, Example] = {
    "scale": Example(summary="A kernel and one tunable", value=JOB_EXAMPLE),
}
