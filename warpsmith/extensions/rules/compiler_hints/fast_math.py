"""Fast exponentials, logarithms and divisions, if the job's tolerances allow them."""

from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import BodyVariant, Declined, Draft, Rule, RuleChange
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import Edit, apply_edits, find, strip

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


class FastMath(Rule):
    """Replaces calls and divisions by macros that select the fast or the exact form.

    Proven: operands are float, and every result is half, bfloat16, or compared with rtol >= 1e-4.
    """

    name = "fast_math"
    keeps_accesses = True
    keeps_places = True
    needs_no_macro = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        strict = next((a.name for a in draft.job.kernel.declared if _is_strict(draft, a)), None)
        if strict is not None:
            return Declined(
                DeclineCode.RELIED_ON, f"{strict} is compared with a relative tolerance below {LOOSE}"
            )
        found = _FastForms()
        for function in draft.source.reachable:
            found.look(draft, function)
        edits = list(found.edits)
        variants = tuple(_in_variant(draft, v, found) for v in draft.variants)
        if not found.edits:
            return Declined(DeclineCode.FORM, "no float function or division that has a fast form")
        made = draft.changed(
            RuleChange(
                self.name,
                f"{', '.join(sorted(found.used)) or 'no function'}; {found.divisions} division(s)",
                edits=edits,
                prologue=_macros(draft.is_opencl, found.used, found.divisions > 0),
                parameters=(
                    Parameter(
                        name=PARAMETER,
                        values=(0, 1),
                        usual=1,  # tolerances say what is allowed, and checks whether it is kept
                        meaning="approximate float functions",
                    ),
                ),
            )
        )
        return replace(made, variants=variants)


class _FastForms:
    """Calls and divisions that have a fast form."""

    def __init__(self) -> None:
        self.edits: list[Edit] = []
        self.used: set[str] = set()
        self.divisions = 0

    def look(self, draft: Draft, function: Node) -> list[Edit]:
        """Edits of a function of a draft."""
        floats, edits = _Floats(draft.facts), []
        for name, target in _fast_calls(draft, floats, function):
            edits.append(Edit(target.start_byte, target.end_byte, f"WS_{name.upper()}"))
            self.used.add(name)
        for n in find(function, "binary_expression"):
            if operator(n) == "/" and floats.is_float(n) and not _is_constant(n):
                edits += _division(n)
                self.divisions += 1
        self.edits += edits
        return edits


def _in_variant(draft: Draft, variant: BodyVariant, found: _FastForms) -> BodyVariant:
    """Another body of the kernel with the same replacements, so that the parameter has a part in it."""
    start, end = draft.source.body.start_byte + 1, draft.source.body.end_byte - 1
    # On a line of its own, or a body that begins with a directive would get one, and other places with it.
    other = draft.rewritten([Edit(start, end, f"\n{variant.body}")])
    edits = found.look(other, other.source.body)
    moved = [Edit(e.start - start - 1, e.end - start - 1, e.text) for e in edits]
    return replace(variant, body=apply_edits(variant.body, moved), known=variant.known | {PARAMETER})


def _is_strict(draft: Draft, a: Argument) -> bool:
    """True for a result whose tolerance leaves no room for fast functions."""
    short = a.dtype.size_bytes <= 2
    exact = draft.job.tolerance(a.name, a.dtype).rtol < LOOSE
    return a.is_mutated and a.dtype.is_float and exact and not short


def _fast_calls(draft: Draft, floats: "_Floats", function: Node) -> Iterator[tuple[str, Node]]:
    """Calls of library functions that have a fast form: the name, and the node that names it."""
    source, table = draft.source, _OPENCL if draft.is_opencl else _CUDA
    for n in find(function, "call_expression"):
        name, target = source.callee(n), n.child_by_field_name("function")
        if name not in table or target is None or name in source.functions:
            continue
        if not draft.is_opencl or all(floats.is_float(a) for a in source.arguments(n)):
            yield name, target


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
        match node.type:
            case "number_literal":
                return _of_number(self.facts.source.of(node))
            case "identifier":
                return self._scalar(node)
            case "subscript_expression":
                return self._element(node)
            case "call_expression":
                return self._call(node)
            case "cast_expression":
                return self._cast(node)
            case "unary_expression":
                return self._signed(node)
            case "binary_expression":
                return self._both(*operands(node)) if operator(node) in ("+", "-", "*", "/") else None
            case "conditional_expression":
                return self._chosen(node)
        return None

    def _scalar(self, identifier: Node) -> str | None:
        v = self.facts.variable(identifier)
        return None if v is None or v.is_pointer or v.is_array else _of_type(v.kind)

    def _cast(self, cast: Node) -> str | None:
        kind = cast.child_by_field_name("type")
        return None if kind is None else _of_type(self.facts.source.of(kind))

    def _signed(self, unary: Node) -> str | None:
        """The kind of `-x`, `+x` and the like; `!x` is no number."""
        argument = unary.child_by_field_name("argument")
        is_not = self.facts.source.of(unary).startswith("!")
        return None if argument is None or is_not else self._kind(argument)

    def _chosen(self, conditional: Node) -> str | None:
        """The kind of both branches together."""
        a, b = (conditional.child_by_field_name(field) for field in ("consequence", "alternative"))
        return self._both(a, b) if a is not None and b is not None else None

    def _element(self, subscript: Node) -> str | None:
        base = subscript.child_by_field_name("argument")
        v = None if base is None else self.facts.variable(strip(base))
        return _of_type(v.kind) if v is not None and (v.is_pointer or v.is_array) else None

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
        if self.facts.is_opencl and (name in (*_OPENCL, "fmax", "fmin", "fabs") or name in table):
            kinds_of = {self._kind(a) for a in source.arguments(node)}
            return "float" if kinds_of == {"float"} else None
        return None


def _of_type(text: str) -> str | None:
    words = " ".join(w for w in text.split() if w not in ("const", "constexpr", "static"))
    return "float" if words == "float" else "int" if words in _INTEGERS else None


def _of_number(text: str) -> str | None:
    if text.startswith("0x") or not any(c in text for c in ".eE"):
        return "int"
    return "float" if text[-1] in "fF" else None
