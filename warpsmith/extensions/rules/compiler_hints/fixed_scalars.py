"""Compiles a kernel's body once more for the scalars of each workload, as constants."""

import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.tree.syntax_tree import Edit, Source, Variable, find, plain, template_parameter_name

PARAMETER = "WS_FIXED"
BODY = "ws_body"
MOST_WORKLOADS = 4
"""Each workload adds a copy of the body, and so its time to compile."""
_INTEGERS = (
    *(Dtype.INT8, Dtype.INT16, Dtype.INT32, Dtype.INT64),
    *(Dtype.UINT8, Dtype.UINT16, Dtype.UINT32, Dtype.UINT64, Dtype.BOOL),
)
_LARGEST = 2**63 - 1
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.S)
_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration")


@dataclass(frozen=True)
class _Scalar:
    """A scalar argument with a value for each workload."""

    place: int
    name: str
    literals: tuple[str, ...]
    cast: str


class FixedScalars(Rule):
    """Adds copies of the body in which the scalars are the numbers of one workload, chosen by comparing them.

    Proven: a copy runs only if every scalar that it takes for a constant has that value, so it computes what
    the body computes; other values run the body itself. The compiler then divides by multiplying.
    """

    name = "fixed_scalars"
    keeps_accesses = True
    keeps_places = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        if PARAMETER in draft.names() or re.search(rf"\b{BODY}\b", draft.kernel.text):
            return Declined(DeclineCode.NAME_TAKEN, f"the name {PARAMETER} or {BODY} is taken")
        source = draft.source
        head = _head(source, draft.kernel.arguments)
        if isinstance(head, Declined):
            return head
        scalars = _scalars(draft, head.names)
        if not scalars:
            return Declined(DeclineCode.LAUNCH, "no scalar of the job has a value that the source can name")
        cases = list(dict.fromkeys(zip(*(s.literals for s in scalars), strict=True)))
        if len(cases) > MOST_WORKLOADS:
            return Declined(
                DeclineCode.LIMIT,
                f"the workloads have {len(cases)} sets of scalars; at most {MOST_WORKLOADS}",
            )
        if not _divides(source):
            return Declined(DeclineCode.NO_GAIN, "no integer is divided by a value that the host passes")
        if draft.is_opencl and _has_local_memory(source):
            words = "OpenCL C has local memory in kernels only, not in the functions that they call"
            return Declined(DeclineCode.BACK_END, words)
        body = _function(head, draft.is_opencl)
        calls = "".join(_call(head, scalars, case) for case in cases)
        text = (
            f"{{\n#if {PARAMETER}\n{calls}#endif\n  {BODY}{head.template_names}({', '.join(head.names)});\n}}"
        )
        start, end = head.start, source.body
        edits = [Edit(start, start, f"{body} {source.of(end)}\n"), Edit(end.start_byte, end.end_byte, text)]
        parameter = Parameter(
            name=PARAMETER,
            values=(0, 1),
            usual=1,  # constants take no register, and other scalars still get the general body
            meaning="1: the body is compiled once more for the scalars of each workload, as constants",
        )
        detail = f"{', '.join(s.name for s in scalars)}; {len(cases)} set(s) of values"
        return draft.changed(RuleChange(self.name, detail, edits=edits, parameters=(parameter,)))


@dataclass(frozen=True)
class _Head:
    """Parts of a definition before its body."""

    start: int
    """First byte of the definition, its template parameters included."""
    template: str
    """`template <...>`; empty for an ordinary function."""
    template_names: str
    """`<T, N>`; empty for an ordinary function."""
    parameters: str
    """Declarations of its parameters, without default values."""
    names: tuple[str, ...]


def _head(source: Source, arguments: Sequence[Argument]) -> _Head | Declined:
    kernel = source.kernel
    function = next(iter(find(kernel, "function_declarator")), None)
    listed = None if function is None else function.child_by_field_name("parameters")
    if listed is None:
        return Declined(DeclineCode.FORM, "the definition's form is not understood")
    given = [c for c in listed.named_children if c.type != "comment"]
    if any(c.type not in _PARAMETERS for c in given) or len(given) != len(arguments):
        return Declined(DeclineCode.LAUNCH, "its parameters are not one for each argument")
    text = ", ".join(_without_default(source, c) for c in given)
    if "__grid_constant__" in text:
        return Declined(DeclineCode.FORM, "a parameter is one that only a kernel can have")
    names = tuple(_name(source, c) for c in given)
    template = _template(source, kernel)
    if isinstance(template, Declined):
        return template
    if not all(names):
        return Declined(DeclineCode.FORM, "a parameter has no name")
    start, words, bound = template
    return _Head(start, words, bound, text, names)


def _without_default(source: Source, parameter: Node) -> str:
    """A parameter's declaration with the words before it that the tree does not have."""
    before = _no_comment_before(parameter)
    start = parameter.start_byte if before is None else before.end_byte
    value = parameter.child_by_field_name("default_value")
    text = source.between(start, parameter.end_byte if value is None else value.start_byte)
    return text.rstrip(" =\t\r\n") if value is not None else text


def _name(source: Source, parameter: Node) -> str:
    declarator = parameter.child_by_field_name("declarator")
    found = [] if declarator is None else find(declarator, "identifier")
    return source.of(found[-1]) if found else ""


def _template(source: Source, kernel: Node) -> tuple[int, str, str] | Declined:
    """First byte of the definition, its `template <...>`, and its parameters' names as arguments."""
    parent = kernel.parent
    if parent is None or parent.type != "template_declaration":
        return _first_byte(source, kernel), "", ""
    listed = parent.child_by_field_name("parameters")
    if listed is None or any(c.type == "requires_clause" for c in parent.children):
        return Declined(DeclineCode.FORM, "its template parameters are not understood")
    words, names = [], []
    for child in (c for c in listed.named_children if c.type != "comment"):
        text = source.of(child)
        name = template_parameter_name(child)
        if "..." in text or child.type == "template_template_parameter_declaration" or not name:
            return Declined(DeclineCode.FORM, f"its template parameter '{text}' has no name of its own")
        words.append(text.split("=", 1)[0].strip())
        names.append(name)
    return parent.start_byte, f"template <{', '.join(words)}> ", f"<{', '.join(names)}>"


def _first_byte(source: Source, kernel: Node) -> int:
    """First byte of the definition, with words before it that the tree does not have, such as `__kernel`."""
    linked = kernel.parent is not None and kernel.parent.type == "linkage_specification"
    node = kernel.parent if linked and kernel.parent is not None else kernel
    before = _no_comment_before(node)
    outside = 0 if node.parent is None or before is None else before.end_byte
    if before is None and node.parent is not None and node.parent.type != "translation_unit":
        outside = node.start_byte
    words = _COMMENT.sub(lambda m: b" " * len(m.group()), source.data[outside : node.start_byte])
    return node.start_byte - len(words.lstrip())


def _no_comment_before(node: Node) -> Node | None:
    before = node.prev_sibling
    while before is not None and before.type == "comment":
        before = before.prev_sibling
    return before


def _scalars(draft: Draft, names: Sequence[str]) -> list[_Scalar]:
    """Scalars whose values are known for every workload."""
    found = []
    for place, (argument, name) in enumerate(zip(draft.kernel.arguments, names, strict=True)):
        literals = tuple(_literals(draft, argument))
        if literals and all(literals):
            # An enumeration takes no number without a cast.
            cast = "" if draft.is_opencl else f"(decltype({name}))"
            found.append(_Scalar(place, name, literals, cast))
    return found


def _literals(draft: Draft, argument: Argument) -> Iterator[str]:
    if argument.role is not Role.SCALAR or argument.value is None:
        return
    for workload in draft.job.workloads:
        value = argument.value.evaluate(workload.dimensions)
        if isinstance(value, str):
            yield ""
        elif argument.dtype in _INTEGERS:
            yield _integer(value, draft.is_opencl)
        elif argument.dtype is Dtype.FLOAT32:
            yield _float(value)
        else:
            yield ""


def _integer(value: float, is_opencl: bool) -> str:
    if value != int(value) or abs(value) > _LARGEST:
        return ""
    suffix = "" if abs(value) < 2**31 else "L" if is_opencl else "LL"
    return f"({int(value)}{suffix})" if value < 0 else f"{int(value)}{suffix}"


def _float(value: float) -> str:
    """The number as float32; empty for zero, which has two signs and one comparison."""
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return ""
    if single == 0 or not math.isfinite(single):
        return ""
    return f"({single!r}f)" if single < 0 else f"{single!r}f"


def _divides(source: Source) -> bool:
    """True if an integer is divided by a value that the host passes, which a constant would save."""
    for function in source.reachable:
        for n in find(function, "binary_expression"):
            if any(plain(c) in ("/", "%") for c in n.children) and _divides_by_argument(source, n):
                return True
    return False


def _divides_by_argument(source: Source, division: Node) -> bool:
    """True if the operands are integers and the divisor is not a constant of the source already."""
    left, right = division.child_by_field_name("left"), division.child_by_field_name("right")
    if left is None or right is None:
        return False
    named = [source.lookup(plain(n), n) for n in (*find(left, "identifier"), *find(right, "identifier"))]
    if any(v is not None and not _is_integer(v) for v in named):
        return False
    divisors = (source.lookup(plain(n), n) for n in find(right, "identifier"))
    return any(v is not None and _is_integer(v) and v.scope is not None for v in divisors)


def _is_integer(v: Variable) -> bool:
    return not v.is_array and element_type(v.kind, {})[0] in _INTEGERS


def _has_local_memory(source: Source) -> bool:
    """True if the kernel's body declares local memory."""
    kernel = source.kernel
    declared = (v.declaration for v in source.variables if v.is_shared and not v.is_parameter)
    return any(kernel.start_byte <= d.start_byte < kernel.end_byte for d in declared)


def _function(head: _Head, is_opencl: bool) -> str:
    words = "inline __attribute__((always_inline))" if is_opencl else "__device__ __forceinline__"
    return f"{head.template}static {words} void {BODY}({head.parameters})"


def _call(head: _Head, scalars: Sequence[_Scalar], case: Sequence[str]) -> str:
    """The body with its constants, if the scalars are these."""
    known = {s.place: f"{s.cast}{literal}" for s, literal in zip(scalars, case, strict=True)}
    test = " && ".join(f"{s.name} == {literal}" for s, literal in zip(scalars, case, strict=True))
    given = ", ".join(known.get(n, name) for n, name in enumerate(head.names))
    return f"  if ({test}) {{\n    {BODY}{head.template_names}({given});\n    return;\n  }}\n"
