"""A kernel of the Hugging Face hub (build.toml, edition 5): sources for its builder, by TVM FFI."""

import keyword
import re

from warpsmith.extensions.exports.cpp import header
from warpsmith.extensions.exports.operator import Operator, default_of
from warpsmith.extensions.exports.rendering import rendered
from warpsmith.extensions.exports.tvm_ffi import source
from warpsmith.report.dispatch_module import python_text


def tree(operator: Operator, other_device: str) -> dict[str, str]:
    """The files of the kernel, by path. The card and the licence are the owner's to write."""
    name = hub_name(operator.name)
    python = name.replace("-", "_")
    binding = f"#ifdef CUDA_KERNEL\n{source(operator, f'{python}.{operator.name}', operator.name)}#endif\n"
    scope = operator.lookup.limits.scope()
    values = {
        "op": operator,
        "name": name,
        "python": python,
        "extents": {
            b.name: f"({''.join(f'{python_text(e, scope)}, ' for e in b.shape)})" for b in operator.buffers
        },
        "defaults": {s.name: default_of(s) for s in operator.scalars},
    }
    templates = {
        "build.toml": "hf_build.toml.jinja",
        "flake.nix": "hf_flake.nix.jinja",
        "CARD.md": "hf_card.md.jinja",
        f"tvm-ffi-ext/{python}/__init__.py": "hf_init.py.jinja",
        f"tests/test_{python}.py": "hf_test.py.jinja",
    }
    return {path: rendered(name, values) for path, name in templates.items()} | {
        "tvm-ffi-ext/tvm_ffi_binding.cpp": binding,
        f"tvm-ffi-ext/{operator.name}.hpp": header(operator, other_device),
        f"{python}_cuda/empty.cu": "// The kernels are cubins in the header beside the binding.\n",
    }


def hub_name(text: str) -> str:
    """A name that the hub takes, and Python as a package: small letters, digits and dashes."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    fits = re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", name) and not keyword.iskeyword(name)
    return name if fits else f"kernel-{name or 'x'}"
