"""A script of Kernel Tuner as facts for a job: its search space, launch, arguments and sizes.

The words are those of `tune_kernel` of Kernel Tuner 1.x (its documentation, "API"). The script is read and
never run. What a call passes and the job does not take over is named in a remark.
"""

import ast
import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Expression
from warpsmith.domain.options import refused_options
from warpsmith.domain.templates.space import ParameterValue
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.extensions.importers.script import Script, ScriptCall
from warpsmith.extensions.importers.script_values import Array, FileText, Number, Size, Unread, plain
from warpsmith.extensions.scaffold.known import KnownArgument, KnownJob, Tunable
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_number
from warpsmith.system.source_text import read_source_text

_CALL = "tune_kernel"
_POSITIONS = (
    *("kernel_name", "kernel_source", "problem_size", "arguments", "tune_params"),
    *(
        "grid_div_x",
        "grid_div_y",
        "grid_div_z",
        "restrictions",
        "answer",
        "atol",
        "verify",
        "verbose",
        "lang",
    ),
    *("device", "platform", "smem_args", "cmem_args", "texmem_args", "compiler", "compiler_options"),
    *("defines", "log", "iterations", "block_size_names", "quiet", "strategy", "strategy_options", "cache"),
    *("metrics", "simulation_mode", "observers", "objective", "objective_higher_is_better"),
)
_BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_BLOCK_DEFAULTS = ("256", "1", "1")
_LANGUAGES = {"CUDA": Backend.CUDA, "CUPY": Backend.CUDA, "NVCUDA": Backend.CUDA}
_LANGUAGES |= {"OPENCL": Backend.OPENCL, "HIP": Backend.HIP}
_MOST_CONFIGURATIONS = 200_000
"""Limit on the configurations that are looked at for the default one."""
_WORD = re.compile(r"[A-Za-z_]\w{0,63}")


class _Passed(dict[str, Any]):
    """Values that a call passes, by parameter of `tune_kernel`; those that are read are noted.

    Args:
        call: an argument behind the known parameters is named by its position.
    """

    def __init__(self, call: ScriptCall) -> None:
        further = (f"argument {n + 1}" for n in range(len(_POSITIONS), len(call.arguments)))
        super().__init__(zip((*_POSITIONS, *further), call.arguments, strict=False))
        self.update(call.keywords)
        self.was_read: set[str] = set()

    def taken(self, name: str) -> Any:
        """The value of a parameter; None without one."""
        self.was_read.add(name)
        return self.get(name)

    def unread(self) -> list[str]:
        """Parameters that have a value and were not read."""
        return [n for n, v in self.items() if n not in self.was_read and v is not None]


@dataclass(frozen=True)
class TunerScript:
    """Call of `tune_kernel` in a script, as facts for a job."""

    known: KnownJob
    source_text: str
    """The kernel, if the script holds it as text; empty otherwise."""
    source_files: tuple[Path, ...]
    backend: Backend | None


def read_script(path: Path, entry: str | None = None) -> TunerScript:
    """The script's space for one kernel.

    Args:
        entry: the kernel's name, for a script that tunes several.

    Raises:
        InvalidInput: the file is no such script, or does not say which kernel, source or space it means.
    """
    text = path.read_text(errors="replace")
    try:
        script = Script(text, (_CALL,))
    except (SyntaxError, ValueError, RecursionError) as exc:
        raise InvalidInput("source", f"{path.name} cannot be read as Python: {exc}") from exc
    given, line = _chosen(path, script.calls, entry)
    space, remarks = _space(f"{path.name}:{line}", given.taken("tune_params"))
    lang = given.taken("lang")
    backend = _LANGUAGES.get(lang.upper()) if isinstance(lang, str) else None
    source = given.taken("kernel_source")
    files = _files(path, source)
    if not files and not isinstance(source, str):
        raise InvalidInput(
            "source",
            f"{path.name}:{line}: the kernel's source is made while it runs; give its file beside the "
            f"script: warpsmith init KERNEL {path.name}",
        )
    reader = _TunerCall(path.name, given, space, script.sizes, [f"{TODO}: {r}." for r in remarks])
    if lang is not None and backend is None:
        reader.left_out("lang", lang)
    for condition in script.assumed:
        reader.remarks.append(f"{TODO}: {condition} is taken to be true.")
    same = sum(_Passed(c).get("kernel_name") == given["kernel_name"] for c in script.calls if _is_named(c))
    if same > 1:
        reader.remarks.append(f"{TODO}: {path.name} tunes this kernel {same} times; this is the first.")
    return TunerScript(
        reader.known(str(given.taken("kernel_name")), backend or _backend_of(source, files)),
        source if isinstance(source, str) and not files else "",
        files,
        backend,
    )


def _is_named(call: ScriptCall) -> bool:
    return isinstance(_Passed(call).get("kernel_name"), str)


def _chosen(path: Path, calls: Sequence[ScriptCall], entry: str | None) -> tuple[_Passed, int]:
    """Arguments of one call, with its line."""
    named = [(_Passed(c), c.line) for c in calls if _is_named(c)]
    if not named:
        raise InvalidInput(
            "source", f"{path.name} calls no {_CALL} with a kernel's name that can be read from it"
        )
    names = list(dict.fromkeys(given["kernel_name"] for given, _ in named))
    if entry is None and len(names) > 1:
        raise InvalidInput("entry", f"{path.name} tunes {len(names)} kernels; name one of {', '.join(names)}")
    wanted = names[0] if entry is None else entry.partition("<")[0]
    chosen = [(given, line) for given, line in named if given["kernel_name"].partition("<")[0] == wanted]
    if not chosen:
        raise InvalidInput("entry", f"{path.name} tunes no {entry}; it tunes {', '.join(names)}")
    return chosen[0]


def _space(place: str, params: Any) -> tuple[dict[str, list[ParameterValue]], list[str]]:
    """Values that a job can have by parameter, and in words those that it cannot."""
    if not isinstance(params, dict) or not params:
        raise InvalidInput("source", f"{place}: tune_params is made while the script runs{_why(params)}")
    found: dict[str, list[ParameterValue]] = {}
    remarks: list[str] = []
    for name, values in params.items():
        numbers = _numbers(f"{place}: the values of tune_params[{name!r}] are made while it runs", values)
        kept = [v for v in numbers if not isinstance(v, str) or _WORD.fullmatch(v)]
        odd = ", ".join(repr(v) for v in numbers if v not in kept)
        if odd:
            remarks.append(f"a value of a job is a number or one word; {name} has no {odd}")
        if kept:
            found[str(name)] = kept
    return found, remarks


def _numbers(refusal: str, values: Any) -> list[Any]:
    """The distinct values of a parameter, with numbers for texts that are numbers."""
    listed = [plain(v) for v in values] if isinstance(values, list | tuple) else []
    if not listed or not all(type(v) in (int, float, bool, str) for v in listed):
        why = next((_why(v) for v in (values, *listed) if isinstance(v, Unread)), "")
        raise InvalidInput("source", refusal + why)
    return list(dict.fromkeys(yaml_number(v.strip()) if isinstance(v, str) else v for v in listed))


def _why(value: Any) -> str:
    held = plain(value)
    return f" ({held.reason})" if isinstance(held, Unread) and held.reason else ""


def _files(path: Path, source: Any) -> tuple[Path, ...]:
    names = source if isinstance(source, list | tuple) else [source]
    paths = [n.path if isinstance(n, FileText) else n for n in names]
    if not all(isinstance(p, str) and re.fullmatch(r"[^\n{}]+\.\w+", p) for p in paths):
        return ()
    found = tuple((path.parent / p) for p in paths)
    missing = [p for p in found if not p.is_file()]
    if missing:
        raise InvalidInput(
            "source", f"{path.name} names {missing[0].name} as its kernel, and there is no {missing[0]}"
        )
    return found


def _backend_of(source: Any, files: Sequence[Path]) -> Backend:
    text = " ".join([str(source), *(read_source_text(f) for f in files)])
    return Backend.OPENCL if re.search(r"\b(?:__)?kernel\s+void\b", text) else Backend.CUDA


@dataclass
class _TunerCall:
    """Turns what a call is given into the words of a job."""

    origin: str
    given: _Passed
    space: Mapping[str, Sequence[Any]]
    sizes: Mapping[str, int]
    remarks: list[str]

    def known(self, entry: str, backend: Backend) -> KnownJob:
        names = [str(n) for n in self._listed("block_size_names")]
        names += _BLOCK_NAMES[len(names) :]
        own = set(self.space)
        block = [n if n in own else usual for n, usual in zip(names, _BLOCK_DEFAULTS, strict=False)]
        grid = self._grid(names)
        positions = [self._argument(a) for a in self._listed("arguments")]
        symbols = self._symbols()
        constraints = tuple(self._constraints())
        options = self._options(backend)
        shared = self._shared()
        said = (t for p in positions for t in (*p.shape, p.value))
        dimensions = self._dimensions(" ".join([*grid, *block, *constraints, shared, *said]))
        defaults = self._defaults(constraints, dimensions) if constraints else {}
        atol = self._atol()
        if unread := self.given.unread():
            self.remarks.append(f"Not taken over from {self.origin}: {', '.join(unread)}.")
        return KnownJob(
            origin=self.origin,
            entry=entry,
            workloads=(dimensions or {"elements" if "n" in own else "n": 1024},)
            if grid or dimensions
            else (),
            arguments=symbols,
            positions=tuple(positions),
            grid=_short(grid),
            block=_short(block),
            shared_bytes=shared,
            parameters=tuple(Tunable(n, tuple(v)) for n, v in self.space.items()),
            defaults=defaults,
            constraints=constraints,
            options=options,
            atol=atol,
            remarks=tuple(self.remarks),
        )

    def left_out(self, what: str, value: Any = None, instead: str = "") -> None:
        """Note a part that is not taken over, with the reason if it was not understood."""
        is_function = isinstance(value, ast.FunctionDef)
        why = f" (a function, line {value.lineno})" if is_function else _why(value)
        self.remarks.append(f"Not taken over from {self.origin}: {what}{why}{instead}.")

    def _symbols(self) -> dict[str, KnownArgument]:
        given = self.given.taken("cmem_args")
        if isinstance(given, dict):
            return {str(name): self._argument(value) for name, value in given.items()}
        if given is not None:
            self.left_out("cmem_args", given)
        return {}

    def _listed(self, name: str) -> Sequence[Any]:
        """The values of an argument that is a list; none for others."""
        given = self.given.taken(name)
        if isinstance(given, list | tuple):
            return given
        if given is not None:
            self.left_out(name, given)
        return ()

    def _dimensions(self, used: str) -> dict[str, int]:
        """The sizes that the words of a job name, without those of the space."""
        sizes = {n: v for n, v in self.sizes.items() if n not in self.space}
        return {n: v for n, v in sizes.items() if re.search(rf"\b{n}\b", used)}

    def _atol(self) -> float | None:
        atol = plain(self.given.taken("atol"))
        if type(atol) in (int, float) and 0 <= atol <= 1e6:
            return float(atol)
        if atol is not None:
            self.left_out("atol", atol)
        return None

    def _grid(self, block_names: Sequence[str]) -> tuple[str, ...]:
        problem = self.given.taken("problem_size")
        extents = list(map(self._expression, problem if isinstance(problem, list | tuple) else [problem]))
        divisors = [self.given.taken(f"grid_div_{axis}") for axis in "xyz"]
        if None in extents:
            self.left_out("problem_size", problem, "; grid is a guess")
            return ()
        grid = []
        for at, (axis, extent) in enumerate(zip("xyz", extents, strict=False)):
            default = [n for n in block_names[at : at + 1] if n in self.space]
            listed = default if divisors[at] is None else divisors[at]
            if not isinstance(listed, list | tuple) or any(self._expression(d) is None for d in listed):
                self.left_out(f"grid_div_{axis}", listed, "; grid is a guess")
                return ()
            texts = [str(self._expression(d)) for d in listed]
            whole = " * ".join(d if re.fullmatch(r"\w+", d) else f"({d})" for d in texts)
            grid.append(f"ceil_div({extent}, {whole.replace('/', '//')})" if whole else str(extent))
        return tuple(grid)

    def _expression(self, given: Any) -> str | None:
        """The text of a number or an expression; None if a job has no such expression."""
        value = given.value if isinstance(given, Number) else given
        if isinstance(value, Size) and not self._names(value.text) & set(self.space):
            return value.text
        if type(value) in (int, float, Size) and value == int(value):
            return str(int(value))
        return value if isinstance(value, str) and self._names(value) else None

    def _names(self, text: str) -> set[str]:
        try:
            return set(Expression(text).names)
        except ExpressionError:
            return set()

    def _argument(self, value: Any) -> KnownArgument:
        if isinstance(value, Array):
            extents = [self._expression(e) for e in value.shape]
            known = () if None in extents else tuple(str(e) for e in extents)
            draw = {} if value.fill is None else {"distribution": "constant", "low": value.fill}
            return KnownArgument(value.dtype, known, draw=draw)
        if isinstance(value, Number):
            if isinstance(value.value, float):
                return KnownArgument(value.dtype, value=repr(value.value))
            return KnownArgument(value.dtype, value=self._expression(value) or "")
        return KnownArgument()

    def _constraints(self) -> Iterator[str]:
        restrictions = self.given.taken("restrictions")
        listed = restrictions if isinstance(restrictions, list) else [restrictions]
        for restriction in listed if restrictions is not None else []:
            is_function = isinstance(restriction, ast.FunctionDef)
            text = returned_expression(restriction, set(self.space)) if is_function else restriction
            if not isinstance(text, str):
                self.left_out(
                    "a restriction that is a function or an object",
                    restriction,
                    "; write it as an expression of `constraints`",
                )
                continue
            try:
                unknown = Expression(text).names - set(self.space) - set(self.sizes)
            except ExpressionError as exc:
                self.left_out(f"the restriction {text!r}: {exc}")
                continue
            if unknown:
                self.left_out(f"the restriction {text!r}, which names {', '.join(sorted(unknown))}")
                continue
            yield text.strip()

    def _options(self, backend: Backend) -> tuple[str, ...]:
        """The options, and macros that Kernel Tuner defines for every kernel."""
        given = self._listed("compiler_options")
        refused = [o for o in given if not isinstance(o, str) or refused_options(backend, [o])]
        for option in refused:
            self.left_out(f"the compiler option {option!r}")
        fixed = [
            f"{n}={v}" for n, v in zip(_BLOCK_NAMES, _BLOCK_DEFAULTS, strict=True) if n not in self.space
        ]
        macros = ("kernel_tuner=1", *fixed)
        return (*(o for o in given if o not in refused), *(f"-D{macro}" for macro in macros))

    def _shared(self) -> str:
        shared = self.given.taken("smem_args")
        size = shared.get("size") if isinstance(shared, dict) else shared
        text = None if size is None else self._expression(size)
        if size is not None and text is None:
            self.left_out("smem_args", size, "; write `shared_bytes` of the launch")
        return text or ""

    def _defaults(self, constraints: Sequence[str], dimensions: Mapping[str, int]) -> dict[str, Any]:
        """The first configuration of the space that the restrictions allow."""
        judged = [Expression(text) for text in constraints]
        names = list(self.space)
        for values in itertools.islice(itertools.product(*self.space.values()), _MOST_CONFIGURATIONS):
            configuration = dict(zip(names, values, strict=True))
            try:
                if all(e.evaluate({**dimensions, **configuration}) for e in judged):
                    return configuration
            except ExpressionError:
                continue
        self.left_out("a default configuration: none of the first that were tried meets the restrictions")
        return {}


def returned_expression(function: ast.FunctionDef, space: set[str]) -> str | None:
    """The result of a function of a configuration as an expression; None if its body is more than arithmetic
    with branches.

    Args:
        space: names of the parameters, which a function of several arguments has as its own.
    """
    parameters = [a.arg for a in function.args.args]
    owner = parameters[0] if len(parameters) == 1 and parameters[0] not in space else ""
    found = _result(function.body, owner, {})
    return None if found is None else ast.unparse(ast.fix_missing_locations(found))


def _result(body: Sequence[ast.stmt], owner: str, local: Mapping[str, ast.expr]) -> ast.expr | None:
    """The result of statements as one expression over parameters; None if there is none."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return copy.deepcopy(local.get(node.id, node))

        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if (
                    name == owner
                ):
                    return ast.Name(key, ast.Load())
            return self.generic_visit(node)

    def translated(node: ast.expr) -> ast.expr:
        found: ast.expr = Names().visit(copy.deepcopy(node))
        return found

    if not body:
        return None
    match body[0]:
        case ast.Return(value=ast.expr() as value):
            return translated(value)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _result(body[1:], owner, {**local, name: translated(value)})
        case ast.If(test=test, body=then, orelse=other):
            yes, no = (_result([*part, *body[1:]], owner, local) for part in (then, other))
            return None if yes is None or no is None else ast.IfExp(translated(test), yes, no)
        case ast.Expr(value=ast.Constant()):
            return _result(body[1:], owner, local)
    return None


def _short(extents: Sequence[str]) -> tuple[str, ...]:
    """Extents without those of 1 at the end."""
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == "1":
        kept.pop()
    return tuple(kept)
