"""A NumPy reference for a scaffold: the kernel's own arithmetic if it is certain, else a stub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warpsmith.source.kernels.kernel_definitions import KernelDefinition
from warpsmith.source.lexing.tokens import blank

_WHOLE = r"(?:const\s+)?(?:unsigned\s+int|unsigned|size_t|u?int(?:32_t|64_t)?|long)\s+(?:const\s+)?"
_PLACE = (
    r"(?:\((?:unsigned|unsigned int|size_t|uint|int)\)\s*)?(?:get_global_id\s*\(\s*0\s*\)"
    r"|blockIdx\.x\s*\*\s*blockDim\.x\s*\+\s*threadIdx\.x|threadIdx\.x\s*\+\s*blockIdx\.x\s*\*\s*blockDim\.x"
    r"|blockDim\.x\s*\*\s*blockIdx\.x\s*\+\s*threadIdx\.x|threadIdx\.x\s*\+\s*blockDim\.x\s*\*\s*blockIdx\.x)"
)
_INDEX = re.compile(rf"^\s*{_WHOLE}(\w+)\s*=\s*{_PLACE}\s*;")
_TOKEN = re.compile(
    r"\s*(?:(\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+)[fF]?|([A-Za-z_]\w*)|([-+*/()\[\],]))"
)
_FUNCTIONS = {
    "exp": "np.exp",
    "log": "np.log",
    "sqrt": "np.sqrt",
    "sin": "np.sin",
    "cos": "np.cos",
    "tanh": "np.tanh",
    "fabs": "np.abs",
    "fmax": "np.fmax",
    "fmin": "np.fmin",
    "floor": "np.floor",
    "ceil": "np.ceil",
}
_FUNCTIONS |= {f"{name}f": text for name, text in _FUNCTIONS.items()}

Fields = Mapping[str, Any]
"""Fields of an argument in a job file."""


def reference_lines(
    kernel: KernelDefinition, arguments: Sequence[Fields], buffers: Sequence[Fields] = ()
) -> Iterator[str]:
    """The scaffold's lines about the reference.

    A kernel with one guarded element per thread, in floats only, becomes a function. For other kernels the
    lines are a comment to be completed by the user, and the kernel itself is the reference.
    """
    found = _elementwise(kernel, arguments)
    if found is not None:
        yield "# Made from the kernel's text, element by element. Look at it: it decides what is right."
        yield "reference:"
        yield "  kind: numpy"
        yield "  source: |"
        yield "    def reference(inputs, dims):"
        listed = ", ".join(f'"{name}": {text}' for name, text in found.items())
        yield f"        return {{{listed}}}"
        return
    yield "# The kernel itself is the reference. A NumPy function is better. None can be derived from this"
    yield "# body; yours may begin so:"
    yield "# reference:"
    yield "#   kind: numpy"
    yield "#   source: |"
    yield "#     def reference(inputs, dims):"
    for a in (*arguments, *buffers):
        if a["role"] in ("input", "inout", "symbol"):
            shape = ", ".join(str(e) for e in a["shape"])
            yield f'#         {a["name"]} = inputs["{a["name"]}"]  # shape [{shape}]'
        elif a["role"] in ("scalar", "struct"):
            yield f'#         {a["name"]} = inputs["{a["name"]}"]'
    outputs = [a["name"] for a in (*arguments, *buffers) if a["role"] in ("output", "inout")]
    listed = ", ".join(f'"{name}": ...' for name in outputs)
    yield f"#         return {{{listed}}}"


def _elementwise(kernel: KernelDefinition, arguments: Sequence[Fields]) -> dict[str, str] | None:
    """Each output as a NumPy expression; None if the kernel is not one element per thread."""
    body = re.sub(r"\s+", " ", blank(kernel.body)).strip()[1:-1].strip()
    index = _INDEX.match(body)
    if index is None or "#" in body:
        return None
    i = index.group(1)
    names = {a.name: fields for a, fields in zip(kernel.arguments, arguments, strict=True) if a.name}
    guarded = _guarded(body[index.end() :].strip(), i)
    if guarded is None or names.get(guarded[0], {}).get("role") != "scalar":
        return None
    length = names[guarded[0]]["value"]
    found: dict[str, str] = {}
    for statement in guarded[1]:
        stored = _stored(statement, i, names, length, set(found))
        if stored is None:
            return None
        found[stored[0]] = stored[1]
    written = {n for n, f in names.items() if f["role"] in ("output", "inout")}
    form = {n: names[n]["name"] for n in found}
    return {form[n]: text for n, text in found.items()} if written == set(found) else None


def _guarded(text: str, i: str) -> tuple[str, list[str]] | None:
    """The name that bounds the index `i`, and the statements inside of the bound."""
    inside = re.fullmatch(rf"if ?\( ?{i} ?< ?(\w+) ?\) ?(?:\{{([^{{}}]*)\}}|([^;{{}}]*;))", text)
    behind = re.fullmatch(rf"if ?\( ?{i} ?>= ?(\w+) ?\) ?(?:return ?;|\{{ ?return ?; ?\}})([^{{}}]*)", text)
    guard = inside or behind
    if guard is None:
        return None
    statements = (guard.group(2) or guard.group(guard.lastindex or 2)).split(";")
    return guard.group(1), [s.strip() for s in statements if s.strip()]


def _stored(
    statement: str, i: str, names: Mapping[str, Fields], length: Any, written: set[str]
) -> tuple[str, str] | None:
    """The output that a statement stores to, and its value as NumPy."""
    store = re.fullmatch(rf"(\w+) ?\[ ?{i} ?\] ?([-+*]?)= ?(.+)", statement)
    if store is None:
        return None
    name, sign, text = store.groups()
    target = names.get(name)
    if target is None or name in written or target["role"] not in ("output", "inout"):
        return None
    value = _expression(text, i, names, length, written)
    own = _expression(f"{name}[{i}]", i, names, length, written)
    if value is None or own is None:
        return None
    return name, f"{own} {sign} ({value})" if sign else value


def _expression(text: str, i: str, names: Mapping[str, Fields], length: Any, written: set[str]) -> str | None:
    """C arithmetic on floats as NumPy; None for everything else."""
    out: list[str] = []
    at, text = 0, text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        number, name, sign = token.groups()
        if number is not None:
            # Integer division in C is integer division.
            out.append(f"{number}.0" if number.isdigit() else repr(float(number)))
        elif sign is not None:
            if sign in "[]":
                return None
            out.append(f" {sign} " if sign in "+-*/" else ", " if sign == "," else sign)
        elif name in _FUNCTIONS and text[at:].lstrip().startswith("("):
            out.append(_FUNCTIONS[name])
        else:
            element = re.compile(rf" ?\[ ?{i} ?\]").match(text, at)
            if name in written or not _is_value(names.get(name), element is not None, length):
                return None
            out.append(f'inputs["{names[name]["name"]}"]')
            at = element.end() if element is not None else at
    made = re.sub(r" {2,}", " ", "".join(out)).strip()
    return None if re.search(r"(?:^|[^.\w])\d+\.0 / \d+\.0", made) else made


def _is_value(fields: Fields | None, is_element: bool, length: Any) -> bool:
    """True if a name is a float scalar or, with an index, a buffer of floats of that length."""
    if fields is None or "float" not in str(fields["dtype"]):
        return False
    if fields["role"] == "scalar":
        return not is_element
    return is_element and fields["shape"] == [length]
