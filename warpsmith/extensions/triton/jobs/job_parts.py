"""The parts of a job for one Triton function: facts from its file, and marked guesses."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.triton_function import TritonFunction, TritonParameter
from warpsmith.extensions.triton.jobs.arithmetic import expression_text, names_of, product
from warpsmith.extensions.triton.jobs.autotune import OPTIONS, Autotune, TunedParameter, read_autotune
from warpsmith.extensions.triton.jobs.constexprs import ConstexprReader, FixedValue, options_of
from warpsmith.extensions.triton.jobs.dimensions import Dimensions
from warpsmith.extensions.triton.jobs.host_launch import TritonLaunch, host_launches, passed_tensor
from warpsmith.extensions.triton.jobs.name_guesses import (
    dtype_of,
    is_float,
    is_pointer,
    is_stride,
    number_of,
    stride_axes,
)
from warpsmith.extensions.triton.jobs.pointer_uses import Uses, pointer_uses
from warpsmith.extensions.triton.jobs.pruning import read_heuristics
from warpsmith.extensions.triton.jobs.safe_values import Module

_TORCH = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64"}
_DTYPES = frozenset("float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool".split())  # noqa: SIM905

_AXIS_FORMS = ("{}", "n_{}", "num_{}", "{}s", "{}_size", "size_{}", "seqlen_{}")
"""Names of sizes by the word that names their axis."""


@dataclass(frozen=True)
class ArgumentPart:
    """Argument of the job, with marks on guessed fields."""

    name: str
    dtype: str
    role: str
    shape: tuple[str, ...] = ()
    value: str = ""
    guesses: tuple[str, ...] = ()
    """Fields that are guesses: dtype, shape, role or value."""
    comment: str = ""
    is_zeroed: bool = False
    """True if it is zero before a launch."""


@dataclass(frozen=True)
class JobParts:
    """Contents of the job file of a function."""

    arguments: tuple[ArgumentPart, ...]
    constexprs: tuple[FixedValue, ...]
    grid: tuple[str, ...]
    grid_comment: str
    """Origin of the grid, as a comment of the job file; empty if the grid is a guess."""
    dimensions: tuple[str, ...]
    tunables: tuple[TunedParameter, ...]
    tunable_comments: Mapping[str, str]
    constraints: tuple[tuple[str, str], ...]
    """Expressions with their reasons."""
    remarks: tuple[str, ...]
    problems: tuple[str, ...]
    """Parts that a person has to write by hand, with the reason."""


def job_parts(
    function: TritonFunction, functions: Mapping[str, TritonFunction], tree: ast.Module
) -> JobParts:
    """The parts of a job for a function.

    Args:
        functions: the Triton functions of the file by name.
        tree: the syntax tree of the file.
    """
    module = Module(tree)
    launches = host_launches(tree, function)
    return _Parts(
        function,
        pointer_uses(function, functions),
        read_autotune(function, module),
        module,
        launches[0] if launches else None,
    ).made()


@dataclass
class _Parts:
    function: TritonFunction
    uses: Uses
    autotune: Autotune
    module: Module
    launch: TritonLaunch | None
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def made(self) -> JobParts:
        plain = [p for p in self.function.parameters if not p.is_constexpr]
        pointers = [p.name for p in plain if self._is_pointer(p)]
        taken = {p.name for p in self.function.parameters if p.is_constexpr} | set(OPTIONS)
        self._names = [p.name for p in plain]
        self._pointers = pointers
        self._dims = Dimensions(self.launch, taken, pointers=pointers)
        self._claim(plain)
        reader = ConstexprReader(self.function, self.autotune, self.launch, self._dims, self.module)
        tunables, comments = reader.tunables()
        self._dims.tunables = [t.name for t in tunables]
        self._tuned = tunables
        reader.fix_from_host()
        self._name_host_sizes()
        scalars = [self._scalar(p) for p in plain if p.name not in pointers]
        fixed = reader.fixed(read_heuristics(self.function, self.module))
        grid, comment = self._grid()
        buffers = [self._buffer(name) for name in pointers]
        by_name = {a.name: a for a in (*scalars, *buffers)}
        constraints = tuple(self._constraints())
        return JobParts(
            tuple(by_name[p.name] for p in plain),
            tuple(fixed),
            grid,
            comment,
            tuple(self._dims.names),
            tuple(tunables),
            comments,
            constraints,
            (*self.autotune.remarks, *self.remarks),
            (*self.autotune.problems, *self.problems, *options_of(self.launch, self.autotune, self._dims)),
        )

    # Which is which

    def _is_pointer(self, parameter: TritonParameter) -> bool:
        name = parameter.name
        if name in self.uses.pointers or "pointer" in parameter.annotation:
            return True
        if name in self.uses.whole or is_stride(name):
            return False
        return passed_tensor(self.launch, name) is not None or is_pointer(name)

    def _claim(self, plain: list[TritonParameter]) -> None:
        """Name the extents that host code passes as they are called in the kernel."""
        given = self.launch.given if self.launch else {}
        for parameter in plain:
            value = given.get(parameter.name)
            is_extent = not (is_stride(parameter.name) or is_float(parameter.name))
            if parameter.name not in self._pointers and is_extent and isinstance(value, ast.expr):
                self._dims.claim(parameter.name, value)

    def _name_host_sizes(self) -> None:
        """Name the extents that host code knows, before guesses take their names."""
        if self.launch is None:
            return
        for part in self.launch.grid or ():
            self._dims.of_host(part)
        for name in self._pointers:
            self._shape(name)

    # Scalars

    def _scalar(self, parameter: TritonParameter) -> ArgumentPart:
        name = parameter.name
        given = self.launch.given.get(name) if self.launch else None
        text = self.launch.texts.get(name, "") if self.launch else ""
        said = f"the host passes {text}" if text else ""
        comment = said if given is None else ""
        floating = is_float(name) and name not in self.uses.counted
        constant = self._dims.constant(given)
        if constant is not None and isinstance(constant.value, bool | int | float):
            return self._constant(name, constant, constant.value, floating)
        if floating:
            return self._number(name, said)
        if isinstance(given, ast.expr) and (found := self._of_host(name, given)) is not None:
            return found
        if is_stride(name):
            return self._stride(name, comment)
        if parameter.default is not None and parameter.default.lstrip("-").isdecimal():
            return ArgumentPart(name, "int32", "scalar", value=parameter.default, guesses=("value",))
        return self._dimension(name, comment)

    def _dimension(self, name: str, comment: str) -> ArgumentPart:
        """A scalar that is a size of its own."""
        dimension = self._dims.add(name)
        self._dims.scalars[name] = ast.Name(dimension, ast.Load())
        # A size that the kernel counts or compares with is what its name says.
        guesses = () if name in self.uses.whole and not comment else ("value",)
        return ArgumentPart(name, "int32", "scalar", value=dimension, guesses=guesses, comment=comment)

    def _constant(self, name: str, node: ast.Constant, value: int | float, floating: bool) -> ArgumentPart:
        """A scalar for which host code passes a number."""
        self._dims.scalars[name] = node
        if isinstance(value, float) or floating:
            return ArgumentPart(name, "float32", "scalar", value=str(float(value)))
        return ArgumentPart(name, "int32", "scalar", value=str(int(value)))

    def _of_host(self, name: str, given: ast.expr) -> ArgumentPart | None:
        """A scalar for which host code passes arithmetic over sizes; None if a job cannot say it."""
        tree = self._dims.tree_of_host(given)
        value = expression_text(tree)
        if tree is None or value is None or self._names_tunable(tree):
            return None
        if value not in self._dims.names and _is_fraction(tree):
            return ArgumentPart(name, "float32", "scalar", value=value, guesses=("dtype",))
        self._dims.scalars[name] = tree
        return ArgumentPart(name, "int32", "scalar", value=value)

    def _number(self, name: str, comment: str) -> ArgumentPart:
        return ArgumentPart(
            name, "float32", "scalar", value=number_of(name), guesses=("value",), comment=comment
        )

    def _names_tunable(self, tree: ast.expr) -> bool:
        return bool(set(names_of(tree)) & set(self._dims.tunables))

    def _stride(self, name: str, comment: str) -> ArgumentPart:
        for pointer in self._pointers:
            axes = stride_axes(pointer, self._names)
            place = next((n for n, (stride, _) in enumerate(axes) if stride == name), None)
            if place is None:
                continue
            shape = self._shape_of_strides(pointer)
            if shape is not None and len(shape) >= len(axes):
                tail = product(shape[len(shape) - len(axes) + place + 1 :] if len(axes) > 1 else shape[1:])
                self._dims.scalars[name] = tail
                text = expression_text(tail) or "1"
                return ArgumentPart(name, "int32", "scalar", value=text, guesses=("value",), comment=comment)
        dimension = self._columns() or self._dims.add("row_size")
        return ArgumentPart(name, "int32", "scalar", value=dimension, guesses=("value",), comment=comment)

    # Buffers

    def _buffer(self, name: str) -> ArgumentPart:
        uses = self.uses
        guesses: list[str] = []
        if (
            name in uses.atomic
            or name in self.autotune.mutated
            or (name in uses.read and name in uses.written)
        ):
            role = "inout"
        else:
            role = "output" if name in uses.written else "input"
        if name not in uses.pointers:
            guesses.append("role")
        dtype = self._dtype(name)
        if not dtype:
            dtype = dtype_of(name)
            guesses.append("dtype")
        shape = self._shape(name)
        if shape is None:
            shape = self._guessed_shape(name)
            guesses.append("shape")
        zeroed = name in self.autotune.zeroed
        return ArgumentPart(name, dtype, role, tuple(shape), guesses=tuple(guesses), is_zeroed=zeroed)

    def _dtype(self, name: str) -> str:
        tensor = passed_tensor(self.launch, name)
        word = "" if tensor is None else _TORCH.get(tensor.dtype, tensor.dtype)
        return word if word in _DTYPES else ""

    def _shape(self, name: str) -> list[str] | None:
        """The shape that host code gives."""
        tensor = passed_tensor(self.launch, name)
        if tensor is None or not tensor.shape:
            return None
        found = [self._dims.of_host(part) for part in tensor.shape]
        known = [text for text in found if text is not None]
        return known if len(known) == len(found) else None

    def _guessed_shape(self, name: str) -> list[str]:
        strides = self._shape_of_strides(name)
        if strides is not None:
            found = [expression_text(part) for part in strides]
            return [text or "1" for text in found]
        bounds = [n for n in self._names if n in self.uses.bounds.get(name, ()) and n in self._dims.scalars]
        values = [expression_text(self._dims.scalars[n]) for n in bounds]
        kept = list(dict.fromkeys(v for v in values if v is not None))
        if kept:
            return kept
        return self._dims.names[:2] or [self._dims.add("n")]

    def _shape_of_strides(self, pointer: str) -> list[ast.expr] | None:
        """Extents that the names of a pointer's strides and the kernel's sizes give."""
        body = (n for statement in self.function.node.body for n in ast.walk(statement))
        used = {n.id for n in body if isinstance(n, ast.Name)}
        axes = stride_axes(pointer, (n for n in self._names if n in used))
        if not axes:
            return None
        words = [word for _, word in axes]
        if len(axes) == 1 and words[0] in ("", "row", "m", "n", "b", "r", "batch"):
            columns = self._columns() or self._dims.add("row_size")
            return [self._size(self._rows()), self._size(columns)]
        return [self._axis(word) for word in words]

    def _axis(self, word: str) -> ast.expr:
        known = {n.lower(): n for n in self._names if n not in self._pointers and not is_stride(n)}
        for form in (form.format(word) for form in _AXIS_FORMS):
            if form in known and known[form] in self._dims.scalars:
                return self._dims.scalars[known[form]]
        return self._size(self._dims.add(f"size_{word or 'n'}"))

    def _rows(self) -> str:
        grid = [self._dims.of_host(part) for part in (self.launch.grid or () if self.launch else ())]
        if grid and grid[0] in self._dims.names:
            return str(grid[0])
        named = next(
            (n for n in self._dims.names if n.lower() in ("n_rows", "rows", "m", "num_rows", "batch")), None
        )
        return named or self._dims.add("n_rows")

    def _columns(self) -> str | None:
        """The dimension that masks compare with most often; of equals the first by name."""
        counts: dict[str, int] = {}
        for names in self.uses.bounds.values():
            for name in names:
                tree = self._dims.scalars.get(name)
                if isinstance(tree, ast.Name):
                    counts[tree.id] = counts.get(tree.id, 0) + 1
        return max(sorted(counts), key=lambda name: counts[name], default=None)

    @staticmethod
    def _size(name: str) -> ast.expr:
        return ast.Name(name, ast.Load())

    # Launch and space

    def _grid(self) -> tuple[tuple[str, ...], str]:
        if self.launch is not None and self.launch.grid is not None:
            found = [self._dims.of_host(part) for part in self.launch.grid]
            known = [text for text in found if text is not None]
            if len(known) == len(found):
                return tuple(known), f"as line {self.launch.line} launches it"
        if not self._dims.names:
            self._dims.add("n")
        first = self._dims.names[0]
        numbers = {t.name for t in self._tuned if type(t.default) is int and t.name not in OPTIONS}
        tile = next((n for n in self._dims.tunables if n in numbers), None)
        return (f"ceil_div({first}, {tile})" if tile else first,), ""

    def _constraints(self) -> Iterator[tuple[str, str]]:
        known = {*self._dims.names, *self._dims.tunables}
        for condition in self.autotune.conditions:
            text = expression_text(self._dims.of_kernel(condition.tree))
            if text is not None and Expression(text).names <= known:
                yield text, f"{condition.function}, line {condition.line}"
            else:
                self.problems.append(
                    f"line {condition.line}: a condition of {condition.function} names what no job has"
                )


def _is_fraction(tree: ast.expr) -> bool:
    """True if an arithmetic divides or takes a root, and so is seldom whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Pow):
            return True
        if isinstance(node, ast.Name) and node.id in ("sqrt", "log2"):
            return True
    return False
