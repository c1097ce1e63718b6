"""A JIT kernel of SGLang: a `.cuh` for its folder `csrc`, the header, and the Python function."""

from warpsmith.extensions.exports.cpp import header
from warpsmith.extensions.exports.operator import Operator
from warpsmith.extensions.exports.rendering import rendered
from warpsmith.extensions.exports.torch_op import defaults
from warpsmith.extensions.exports.tvm_ffi import source

CSRC = "python/sglang/kernels/jit/csrc"
OPS = "python/sglang/kernels/ops"


def tree(operator: Operator, other_device: str) -> dict[str, str]:
    """The files, by their paths in SGLang's repository."""
    name = operator.name
    values = {"op": operator, "defaults": defaults(operator)}
    return {
        f"{CSRC}/warpsmith/{name}.cuh": source(operator, f"sglang.kernels.ops.{name}.{name}"),
        f"{CSRC}/warpsmith/{name}.hpp": header(operator, other_device),
        f"{OPS}/{name}.py": rendered("sglang_op.py.jinja", values),
    }
