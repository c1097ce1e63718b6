"""Fast exponentials, logarithms and divisions, if the job's tolerances allow them."""

from tree_sitter import Node

from warpsmith.domain.kernel import Dtype
from warpsmith.domain.space import Parameter
from warpsmith.rewrite.analysis.draft import Declined, Draft
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.source.syntax_tree import Edit, find, strip

PARAMETER = "WS_FAST_MATH"
LOOSE = 1e-4
_CUDA = {"expf": "__expf", "logf": "__logf", "log2f": "__log2f", "sinf": "__sinf", "cosf": "__cosf"}
_OPENCL = {n: f"native_{n}" for n in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan")}
_GIVES_FLOAT = {
    *_CUDA,
    *_CUDA.values(),
    *("sqrtf", "rsqrtf", "fmaxf", "fminf", "fabsf", "powf", "tanhf", "erff", "__fdividef"),
    *("__half2float", "__bfloat162float", "vload_half"),
}
_INTEGERS = {"int", "unsigned", "uint", "unsigned int", "uint32_t", "int32_t", "size_t", "long", "int64_t"}


class FastMath:
    """Replaces calls and divisions by macros that select the fast or the exact form.

    Proven: operands are float, and every result is half, bfloat16, or compared with rtol >= 1e-4.
    """

    name = "fast_math"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        for a in draft.kernel.arguments:
            short = a.dtype in (Dtype.FLOAT16, Dtype.BFLOAT16)
            strict = draft.job.tolerance(a.name, a.dtype).rtol < LOOSE
            if a.is_mutated and a.dtype.is_float and strict and not short:
                return Declined(f"{a.name} is compared with a relative tolerance below {LOOSE}")
        edits, used, divisions = [], set(), 0
        table = _OPENCL if draft.is_opencl else _CUDA
        floats = _Floats(draft.facts)
        for function in draft.source.reachable:
            for n in find(function, "call_expression"):
                name = draft.source.callee(n)
                target = n.child_by_field_name("function")
                if name not in table or target is None or name in draft.source.functions:
                    continue
                if draft.is_opencl and not all(floats.is_float(a) for a in draft.source.arguments(n)):
                    continue
                edits.append(Edit(target.start_byte, target.end_byte, f"WS_{name.upper()}"))
                used.add(name)
            for n in find(function, "binary_expression"):
                if operator(n) == "/" and floats.is_float(n) and not _is_constant(n):
                    edits += _division(n)
                    divisions += 1
        if not edits:
            return Declined("no float function or division that has a fast form")
        return draft.changed(
            self.name,
            f"{', '.join(sorted(used)) or 'no function'}; {divisions} division(s)",
            edits=edits,
            prologue=_macros(draft.is_opencl, used, divisions > 0),
            parameters=(Parameter(name=PARAMETER, values=(0, 1), meaning="approximate float functions"),),
        )


def _division(n: Node) -> list[Edit]:
    left, right = operands(n)
    return [
        Edit(n.start_byte, left.start_byte, "WS_DIVIDE("),
        Edit(left.end_byte, right.start_byte, ", "),
        Edit(right.end_byte, n.end_byte, ")"),
    ]


def _is_constant(n: Node) -> bool:
    return not find(n, "identifier")


def _macros(opencl: bool, used: set[str], divides: bool) -> str:
    table = _OPENCL if opencl else _CUDA
    fast = [f"#define WS_{n.upper()}(x) {table[n]}(x)" for n in sorted(used)]
    exact = [f"#define WS_{n.upper()}(x) {n}(x)" for n in sorted(used)]
    if divides:
        quick = "native_divide((float)(a), (float)(b))" if opencl else "__fdividef(a, b)"
        fast.append(f"#define WS_DIVIDE(a, b) {quick}")
        exact.append("#define WS_DIVIDE(a, b) ((a) / (b))")
    return "\n".join([f"#if {PARAMETER}", *fast, "#else", *exact, "#endif", ""])


class _Floats:
    """Finds expressions of type float: not double, integer or half."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def is_float(self, node: Node) -> bool:
        """True if the node is proven to be float."""
        return self._kind(node) == "float"

    def _kind(self, node: Node) -> str | None:
        node = strip(node)
        source = self.facts.source
        text = source.of(node)
        match node.type:
            case "number_literal":
                real = not text.startswith("0x") and any(c in text for c in ".eE")
                return ("float" if text[-1] in "fF" else None) if real else "int"
            case "identifier":
                v = self.facts.variable(node)
                return None if v is None or v.is_pointer or v.is_array else _of_type(v.type_text)
            case "subscript_expression":
                base = node.child_by_field_name("argument")
                v = None if base is None else self.facts.variable(strip(base))
                element = v is not None and (v.is_pointer or v.is_array)
                return _of_type(v.type_text) if v is not None and element else None
            case "call_expression":
                return self._call(node)
            case "unary_expression" | "cast_expression":
                if node.type == "cast_expression":
                    kind = node.child_by_field_name("type")
                    return None if kind is None else _of_type(source.of(kind))
                argument = node.child_by_field_name("argument")
                return None if argument is None or text.startswith("!") else self._kind(argument)
            case "binary_expression":
                return self._both(*operands(node)) if operator(node) in ("+", "-", "*", "/") else None
            case "conditional_expression":
                a, b = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
                return self._both(a, b) if a is not None and b is not None else None
        return None

    def _both(self, a: Node, b: Node) -> str | None:
        kinds = {self._kind(a), self._kind(b)}
        if None in kinds:
            return None
        return "float" if "float" in kinds else "int"

    def _call(self, node: Node) -> str | None:
        source = self.facts.source
        name = source.callee(node)
        if name in source.functions:
            kinds = {source.of(k) for f in source.functions[name] if (k := f.child_by_field_name("type"))}
            return _of_type(next(iter(kinds))) if len(kinds) == 1 else None
        if name in _GIVES_FLOAT or name in ("float", "static_cast<float>"):
            return "float"
        table = {"WS_" + n.upper() for n in (*_CUDA, *_OPENCL)}
        if source.backend.value == "opencl" and (name in (*_OPENCL, "fmax", "fmin", "fabs") or name in table):
            kinds_of = {self._kind(a) for a in source.arguments(node)}
            return "float" if kinds_of == {"float"} else None
        return None


def _of_type(text: str) -> str | None:
    words = " ".join(w for w in text.split() if w not in ("const", "constexpr", "static"))
    return "float" if words == "float" else "int" if words in _INTEGERS else None
