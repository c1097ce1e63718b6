"""Values of host code, followed by name: tensors with their shapes, and arithmetic over their extents."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpsmith.domain.kernels.triton_function import last_name
from warpsmith.extensions.triton.jobs.arithmetic import product, translated

_SAME = frozenset(
    "contiguous to cuda float half bfloat16 detach clone empty_like zeros_like ones_like rand_like "  # noqa: SIM905
    "randn_like full_like requires_grad_ type_as copy".split()
)
"""Calls whose result has the shape of a tensor."""
_LIKE = frozenset(("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"))
_MADE = frozenset(
    ("empty", "zeros", "ones", "full", "rand", "randn", "randint", "new_empty", "new_zeros", "new_ones")
)
MULTIPROCESSORS = "device.multiprocessors"
"""Number of a device's multiprocessors, as expressions of a job name it."""
_COUNTS = frozenset(("get_sm_count", "get_num_sms", "num_sms", "get_multiprocessor_count", "sm_count"))
_SHAPED = frozenset(("view", "reshape"))
_UNSIZED = -1


@dataclass
class HostTensor:
    """A tensor of host code."""

    name: str
    shape: list[ast.expr] | None = None
    """Extents; None while nothing is known of them."""
    dtype: str = ""
    """Name of the element type, if the code says it."""


@dataclass(frozen=True)
class Extents:
    """A shape as a value of its own."""

    tensor: HostTensor | None
    parts: tuple[ast.expr, ...] = ()


Value = HostTensor | Extents | ast.expr


def atom(text: str) -> ast.Name:
    """A value of which only the name is known, such as `x.shape[0]`."""
    return ast.Name(text, ast.Load())


@dataclass
class HostNames:
    """Names of one host function. Extents are named by the atoms `TENSOR.shape[AXIS]`."""

    values: dict[str, Value] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    """The name that the code gives an atom, by the atom."""
    same: dict[str, str] = field(default_factory=dict)
    """Atoms that are equal to another."""
    locals: dict[str, ast.expr] = field(default_factory=dict)
    """Values assigned to names, by the atom that stands for each assignment."""
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    """Defaults of the function's parameters."""

    def equal(self, name: str) -> str:
        """The atom that stands for an atom and all that equal it."""
        for _ in range(len(self.same) + 1):
            if name not in self.same:
                break
            name = self.same[name]
        return name

    def join(self, first: ast.expr, second: ast.expr) -> None:
        """Note that two atoms are equal."""
        if isinstance(first, ast.Name) and isinstance(second, ast.Name):
            a, b = self.equal(first.id), self.equal(second.id)
            if a != b:
                self.same[b] = a

    def tensor(self, node: ast.expr) -> HostTensor | None:
        """The tensor that an expression is; a name of which nothing is known becomes one."""
        found = self.value(node)
        if isinstance(found, HostTensor):
            return found
        if isinstance(node, ast.Name) and (found is None or _is_atom(found, node.id)):
            made = HostTensor(node.id)
            self.values[node.id] = made
            return made
        if isinstance(node, ast.Attribute):
            return HostTensor(ast.unparse(node))
        return None

    def value(self, node: ast.expr) -> Value | None:
        """The value of an expression; None if it is not followed."""
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=owner, attr="shape"):
                return self._shape(self.tensor(owner))
            case ast.Attribute(value=owner, attr="T"):
                return self._transposed(self.tensor(owner))
            case ast.Call(func=ast.Attribute(attr="size"), args=[]):
                return self._shape(self.tensor(node.func.value))  # type: ignore[attr-defined]
            case ast.Call():
                found = self._tensor_call(node)
                return found if found is not None else self.number(node)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                parts = self._extents(elts)
                return None if parts is None else Extents(None, tuple(parts))
            case ast.IfExp(body=body, orelse=orelse):
                for part in (body, orelse):
                    if isinstance(chosen := self.value(part), HostTensor):
                        return chosen
        return self.number(node)

    def number(self, node: ast.expr) -> ast.expr | None:
        """A number of host code as arithmetic over atoms; None if it is none."""
        return translated(node, self._leaf)

    def _leaf(self, node: ast.expr) -> ast.expr | None:
        match node:
            case ast.Name(id=name):
                found = self.values.get(name)
                return found if isinstance(found, ast.expr) else None
            case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=axis):
                return self._extent(self.tensor(owner), _whole(axis))
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as word)):
                return atom(f"META.{word}") if name not in self.values else None
            case ast.Subscript(value=owner, slice=axis):
                found = self.value(owner) if isinstance(owner, ast.Name) else None
                number = _whole(axis)
                if isinstance(found, Extents) and number is not None:
                    return self.part(found, number)
            case ast.Attribute(attr="multi_processor_count"):
                return atom(MULTIPROCESSORS)
            case ast.Call(func=func) if last_name(func) in _COUNTS:
                return atom(MULTIPROCESSORS)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._chosen(test, body, orelse)
            case ast.Call():
                return self._size_call(node)
        return None

    def _size_call(self, node: ast.Call) -> ast.expr | None:
        """The number that a method of a tensor, or `len` of one, gives; None for other calls."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[axis]):
                return self._extent(self.tensor(owner), _whole(axis))
            case ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[axis]):
                return self._stride(self.tensor(owner), _whole(axis))
            case ast.Call(func=ast.Attribute(value=owner, attr="numel" | "nelement"), args=[]):
                tensor = self.tensor(owner)
                if tensor is None:
                    return None
                return atom(f"{tensor.name}.numel()") if tensor.shape is None else product(tensor.shape)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name() as only]):
                tensor = self.tensor(only)
                return None if tensor is None else self._extent(tensor, 0)
        return None

    def _chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> ast.expr | None:
        """A choice that holds for arguments which are left out; None if sizes decide it."""
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
                default = self.defaults.get(name)
                left_out = isinstance(default, ast.Constant) and default.value is None
                return self.number(body if isinstance(op, ast.Is) == left_out else orelse)
        if self.number(test) is not None:
            return None
        found = self.number(body)
        return self.number(orelse) if found is None else found

    def unpacked(self, count: int, elts: Sequence[ast.expr]) -> list[ast.expr | None] | None:
        """The values of a tuple with at most one starred shape, whose rank follows from the count."""
        starred = [n for n, e in enumerate(elts) if isinstance(e, ast.Starred)]
        rank = count - len(elts) + 1
        if len(starred) != 1 or rank < 1:
            return None
        found: list[ast.expr | None] = []
        for elt in elts:
            if not isinstance(elt, ast.Starred):
                part = self.value(elt)
                found.append(part if isinstance(part, ast.expr) else None)
                continue
            inner = self.value(elt.value)
            if not isinstance(inner, Extents):
                return None
            found += self.ranked(inner, rank)
        return found if len(found) == count else None

    def ranked(self, found: Extents, rank: int) -> list[ast.expr]:
        """The extents of a shape that turns out to have this many."""
        tensor = found.tensor
        if tensor is None or tensor.shape is not None:
            return list(found.parts if tensor is None else tensor.shape or ())
        tensor.shape = [atom(self.equal(f"{tensor.name}.shape[{n}]")) for n in range(rank)]
        for n, part in enumerate(tensor.shape):
            self.join(part, atom(f"{tensor.name}.shape[{n - rank}]"))
        return list(tensor.shape)

    def _shape(self, tensor: HostTensor | None) -> Extents | None:
        return None if tensor is None else Extents(tensor, tuple(tensor.shape or ()))

    def part(self, found: Extents, number: int) -> ast.expr | None:
        """The extent of a shape along an axis; None if it has no such axis."""
        if found.tensor is not None and found.tensor.shape is None:
            return self._extent(found.tensor, number)
        parts = found.parts
        return parts[number] if -len(parts) <= number < len(parts) else None

    def _extent(self, tensor: HostTensor | None, axis: int | None) -> ast.expr | None:
        if tensor is None or axis is None:
            return None
        if tensor.shape is None:
            return atom(self.equal(f"{tensor.name}.shape[{axis}]"))
        return tensor.shape[axis] if -len(tensor.shape) <= axis < len(tensor.shape) else None

    def _stride(self, tensor: HostTensor | None, axis: int | None) -> ast.expr | None:
        """The stride of a contiguous tensor."""
        if tensor is None or axis is None:
            return None
        if axis == -1:
            return ast.Constant(1)
        if axis == -2 and tensor.shape is None:
            return self._extent(tensor, -1)
        if tensor.shape is None or not -len(tensor.shape) <= axis < len(tensor.shape):
            return None
        return product(tensor.shape[axis % len(tensor.shape) + 1 :])

    @staticmethod
    def _transposed(tensor: HostTensor | None) -> HostTensor | None:
        """A tensor with its last two axes swapped."""
        if tensor is None or tensor.shape is None or len(tensor.shape) < 2:
            return tensor
        *first, rows, columns = tensor.shape
        return HostTensor(tensor.name, [*first, columns, rows], tensor.dtype)

    def _tensor_call(self, node: ast.Call) -> HostTensor | None:
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        dtype = next((last_name(k.value) for k in node.keywords if k.arg == "dtype"), "")
        if name in _LIKE and node.args:
            base = self.tensor(node.args[0])
            return None if base is None else HostTensor(base.name, base.shape, dtype or base.dtype)
        if name in _MADE and node.args:
            return HostTensor("", self._sizes(node.args), dtype)
        return None if owner is None else self._method(name, owner, node.args)

    def _method(self, name: str, owner: ast.expr, args: Sequence[ast.expr]) -> HostTensor | None:
        """The tensor that a method of another gives; None for other methods."""
        if name not in (*_SAME, *_SHAPED, "t", "transpose") or (base := self.tensor(owner)) is None:
            return None
        if name in _SAME:
            return HostTensor(base.name, base.shape, base.dtype)
        return self._viewed(base, args) if name in _SHAPED else self._transposed(base)

    def _sizes(self, args: Sequence[ast.expr]) -> list[ast.expr] | None:
        found = self.value(args[0])
        if isinstance(found, Extents):
            if found.tensor is not None and found.tensor.shape is None:
                return None
            return list(found.parts)
        kept = [a for a in args if not isinstance(a, ast.Starred)]
        return self._extents(kept) if len(kept) == len(args) else None

    def _viewed(self, base: HostTensor, args: Sequence[ast.expr]) -> HostTensor:
        given = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List) else args
        parts = self._sizes(args) if len(args) == 1 else self._extents(given)
        if parts is None:
            return HostTensor(base.name)
        if base.shape is not None and len(base.shape) == len(parts) and len(parts) > 1:
            parts = [b if _is_open(p) else p for p, b in zip(parts, base.shape, strict=True)]
        name = f"{base.name}.view"
        return HostTensor(
            name, [atom(f"{name}[{n}]") if _is_open(p) else p for n, p in enumerate(parts)], base.dtype
        )

    def _extents(self, elts: Sequence[ast.expr]) -> list[ast.expr] | None:
        found: list[ast.expr] = []
        for elt in elts:
            part = self.value(elt)
            if not isinstance(part, ast.expr):
                return None
            found.append(part)
        return found


def _whole(node: ast.expr) -> int | None:
    try:
        found = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if type(found) is int else None


def _is_open(node: ast.expr) -> bool:
    return _whole(node) == _UNSIZED


def _is_atom(value: Value, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name
