"""Finds the parameters of a function that are pointers, and the accesses to the memory behind them."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpsmith.domain.kernels.triton_function import TritonFunction, last_name
from warpsmith.extensions.triton.jobs.arithmetic import names_of

_KEEPS = frozenset(
    "make_block_ptr advance make_tensor_descriptor _experimental_make_tensor_descriptor multiple_of "  # noqa: SIM905
    "max_contiguous max_constancy broadcast_to expand_dims cast to".split()
)
"""Calls whose result leads to the memory of their first argument."""
_LOADS = frozenset(("load", "_experimental_descriptor_load", "load_tensor_descriptor", "gather"))
_STORES = frozenset(("store", "_experimental_descriptor_store", "store_tensor_descriptor", "scatter"))
_POINTER_NAME = re.compile(r"(?i)(?:^|_)(?:ptrs?|pointer)(?:_|$)|ptrs?$")
_MOST_ROUNDS = 20
_DEEPEST = 6
"""Limit on the depth of calls that are followed."""


@dataclass(frozen=True)
class Uses:
    """Names of parameters by use."""

    read: frozenset[str]
    written: frozenset[str]
    atomic: frozenset[str]
    whole: frozenset[str]
    """Parameters that are compared, multiplied or counted to: numbers, unless they are also pointers."""
    counted: frozenset[str]
    """Numbers that sizes and indices are made of, and no arithmetic of floats alone; all are in `whole`."""
    bounds: Mapping[str, frozenset[str]]
    """By pointer, the parameters that the masks of its accesses compare with."""

    @property
    def pointers(self) -> frozenset[str]:
        """Every parameter through which memory is read or written."""
        return self.read | self.written | self.atomic


def pointer_uses(function: TritonFunction, functions: Mapping[str, TritonFunction], depth: int = 0) -> Uses:
    """Uses of a function's parameters, also by the file's functions that it calls.

    Args:
        functions: the Triton functions of the file by name.
        depth: the number of calls that lead to the function.
    """
    return _PointerFlow(function, functions, depth).uses()


def whole_rows(function: TritonFunction) -> dict[str, str]:
    """Parameters that are the length of one `tl.arange`, with the size that it has to reach.

    The arange is compared with the size as it is, and nothing counts in steps of the parameter: a smaller
    one would leave elements out.
    """
    known = {p.name for p in function.parameters}
    ranges: dict[str, str] = {}
    found: dict[str, str] = {}
    stepped: set[str] = set()
    for node in ast.walk(function.node):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=func, args=[ast.Constant(value=0), ast.Name(id=length)]),
            ) if last_name(func) == "arange":
                ranges[name] = length
            case ast.BinOp(left=left, op=ast.Mult() | ast.FloorDiv(), right=right):
                stepped |= {n.id for n in (left, right) if isinstance(n, ast.Name)}
            case ast.Call(func=func, args=args) if last_name(func) in ("range", "cdiv", "static_range"):
                stepped |= {n.id for a in args for n in ast.walk(a) if isinstance(n, ast.Name)}
    for node in ast.walk(function.node):
        match node:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt()], comparators=[ast.Name(id=size)]) if (
                name in ranges and ranges[name] not in stepped and {size, ranges[name]} <= known
            ):
                found.setdefault(ranges[name], size)
    return found


class _PointerFlow:
    """Follows pointers through a function: candidates of a name are the parameters that sums put into it."""

    def __init__(self, function: TritonFunction, functions: Mapping[str, TritonFunction], depth: int) -> None:
        self._functions = functions
        self._depth = depth
        self._node = function.node
        self._parameters = [p.name for p in function.parameters if not p.is_constexpr]
        self._known: dict[str, tuple[str, ...]] = {name: (name,) for name in self._parameters}
        self._compared: dict[str, frozenset[str]] = {}
        self._whole = frozenset(self._numbers(True))
        self._counted = frozenset(self._numbers(False))

    def uses(self) -> Uses:
        for _ in range(_MOST_ROUNDS):
            before = dict(self._known)
            for node in ast.walk(self._node):
                self._flow(node)
            if before == self._known:
                break
        found: list[tuple[str, tuple[str, ...], frozenset[str]]] = []
        for call in ast.walk(self._node):
            if isinstance(call, ast.Call):
                found += self._accesses(call)
        sure = {c[0] for _, c, _ in found if len(c) == 1}
        kinds: dict[str, set[str]] = {"read": set(), "written": set(), "atomic": set()}
        bounds: dict[str, frozenset[str]] = {}
        for kind, candidates, compared in found:
            for name in self._pointers(candidates, sure):
                kinds[kind].add(name)
                bounds[name] = bounds.get(name, frozenset()) | compared
        read, written, atomic = (frozenset(kinds[kind]) for kind in ("read", "written", "atomic"))
        return Uses(read, written, atomic, self._whole, self._counted, bounds)

    def _pointers(self, candidates: tuple[str, ...], sure: set[str]) -> list[str]:
        """The pointers among the parameters of an address; the others of the sum are offsets."""
        if len(candidates) < 2:
            return list(candidates)
        for kept in (
            [c for c in candidates if c in sure],
            [c for c in candidates if _POINTER_NAME.search(c)],
            [c for c in candidates if c not in self._whole],
        ):
            if kept:
                return kept[:1]
        return [candidates[0]]

    def _flow(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub(), value=value):
                self._put(name, self._of(value))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self._put(name, self._of(value))
                names = names_of(value)
                self._compared[name] = self._compared.get(name, frozenset()) | self._limits(value)
                for other in names:
                    self._compared[name] |= self._compared.get(other, frozenset())
            case ast.Tuple(elts=parts), ast.Tuple(elts=values) if len(parts) == len(values):
                for part, inner in zip(parts, values, strict=True):
                    self._assign(part, inner)

    def _put(self, name: str, candidates: tuple[str, ...]) -> None:
        self._known[name] = tuple(dict.fromkeys((*self._known.get(name, ()), *candidates)))

    def _of(self, node: ast.expr) -> tuple[str, ...]:
        """Parameters in a sum, in their order."""
        match node:
            case ast.Name(id=name):
                return self._known.get(name, ())
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return tuple(dict.fromkeys((*self._of(left), *self._of(right))))
            case ast.IfExp(body=body, orelse=orelse):
                return tuple(dict.fromkeys((*self._of(body), *self._of(orelse))))
            case ast.Subscript(value=value):
                return self._of(value)
            case ast.Call():
                return self._of_call(node)
        return ()

    def _of_call(self, node: ast.Call) -> tuple[str, ...]:
        """Parameters in a call whose result leads to the memory of its argument."""
        name = last_name(node.func)
        if name not in _KEEPS:
            return ()
        if name in ("to", "cast") and not any("pointer" in ast.unparse(a) for a in node.args):
            return ()
        if name == "to" and isinstance(node.func, ast.Attribute):
            return self._of(node.func.value)
        base = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "base"), None)
        return () if base is None else self._of(base)

    def _accesses(self, call: ast.Call) -> Iterator[tuple[str, tuple[str, ...], frozenset[str]]]:
        name = last_name(call.func)
        kind = _kind_of_access(name)
        if not kind:
            if name in self._functions and self._depth < _DEEPEST:
                yield from self._called(call, self._functions[name])
            return
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        is_language = owner is not None and last_name(owner) in ("tl", "language")
        first = call.args[0] if call.args else next((k.value for k in call.keywords), None)
        if owner is not None and not is_language and self._of(owner):
            first = owner  # a descriptor's method
        if first is not None:
            mask = self._mask(call, 1 if kind == "read" else 2, is_language)
            yield kind, self._of(first), frozenset() if mask is None else self._bounds(mask)

    @staticmethod
    def _mask(call: ast.Call, place: int, is_language: bool) -> ast.expr | None:
        """The mask of an access: by keyword, or at its place among the arguments of Triton's own function."""
        mask = next((k.value for k in call.keywords if k.arg == "mask"), None)
        return mask or (call.args[place] if len(call.args) > place and is_language else None)

    def _called(
        self, call: ast.Call, function: TritonFunction
    ) -> Iterator[tuple[str, tuple[str, ...], frozenset[str]]]:
        if function.node is self._node:
            return
        names = [p.name for p in function.parameters]
        given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        inner = pointer_uses(function, self._functions, self._depth + 1)
        for kind in ("read", "written", "atomic"):
            for name in sorted(getattr(inner, kind)):
                if name in given:
                    yield kind, self._of(given[name]), frozenset()

    def _bounds(self, mask: ast.expr) -> frozenset[str]:
        found = self._limits(mask)
        for name in names_of(mask):
            found |= self._compared.get(name, frozenset())
        return found

    def _limits(self, node: ast.expr) -> frozenset[str]:
        """Parameters that stand right of `<` in an expression."""
        found: set[str] = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Lt | ast.LtE):
                found |= {n for n in names_of(inner.comparators[0]) if n in self._parameters}
        return frozenset(found)

    def _numbers(self, products: bool) -> Iterator[str]:
        """Parameters in places where only a number can be.

        Args:
            products: whether products and quotients count, which floats have too.
        """
        for node in ast.walk(self._node):
            match node:
                case ast.BinOp(
                    left=left, op=ast.Mult() | ast.Mod() | ast.FloorDiv() | ast.Div() as op, right=right
                ) if products or isinstance(op, ast.Mod | ast.FloorDiv):
                    places = [left, right]
                case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE(), *_]):
                    places = [left, *node.comparators]
                case ast.Call(func=func, args=args) if last_name(func) in (
                    "cdiv",
                    "range",
                    "min",
                    "max",
                    "minimum",
                ):
                    places = [*args]
                case _:
                    continue
            for place in places:
                yield from (n.id for n in (place,) if isinstance(n, ast.Name) and n.id in self._parameters)


def _kind_of_access(name: str) -> str:
    """The kind of access of a function of Triton; empty if it accesses no memory."""
    if name.startswith("atomic_"):
        return "atomic"
    return "read" if name in _LOADS else "written" if name in _STORES else ""
