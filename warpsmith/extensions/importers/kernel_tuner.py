"""A script of Kernel Tuner as facts for a job: its search space, launch, arguments and sizes.

The words are those of `tune_kernel` of Kernel Tuner 1.x (its documentation, "API"). The script is read and
never run, so functions and lambdas that compute sizes are named as not taken over.
"""

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Expression
from warpsmith.domain.options import refused_options
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.extensions.importers.script import Script, ScriptCall
from warpsmith.extensions.importers.script_values import UNKNOWN, Array, FileText, Number, Size, plain
from warpsmith.extensions.scaffold.known import KnownArgument, KnownJob, Tunable
from warpsmith.system.source_text import read_source_text

_CALL = "tune_kernel"
_POSITIONS = (
    "kernel_name",
    "kernel_source",
    "problem_size",
    "arguments",
    "tune_params",
    "grid_div_x",
    "grid_div_y",
    "grid_div_z",
    "restrictions",
)
_BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_BLOCK_DEFAULTS = ("256", "1", "1")
_LANGUAGES = {"CUDA": Backend.CUDA, "CUPY": Backend.CUDA, "NVCUDA": Backend.CUDA, "OPENCL": Backend.OPENCL}
_MOST_CONFIGURATIONS = 200_000
"""Limit on the configurations that are looked at for the default one."""


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
    call = _chosen(path, script.calls, entry)
    given = _given(call)
    space = _space(path, call, given)
    backend = _LANGUAGES.get(str(given.get("lang")).upper())
    reader = _TunerCall(path.name, given, space, script.sizes)
    source = given.get("kernel_source", UNKNOWN)
    files = _files(path, source)
    if not files and not isinstance(source, str):
        raise InvalidInput(
            "source",
            f"{path.name}:{call.line}: the kernel's source is made while it runs; give its file beside the "
            f"script: warpsmith init KERNEL {path.name}",
        )
    return TunerScript(
        reader.known(str(given["kernel_name"]), backend or _backend_of(source, files)),
        source if isinstance(source, str) and not files else "",
        files,
        backend,
    )


def _chosen(path: Path, calls: Sequence[ScriptCall], entry: str | None) -> ScriptCall:
    named = [(c, _given(c).get("kernel_name")) for c in calls]
    named = [(c, name) for c, name in named if isinstance(name, str)]
    if not named:
        raise InvalidInput(
            "source", f"{path.name} calls no {_CALL} with a kernel's name that can be read from it"
        )
    names = list(dict.fromkeys(str(name) for _, name in named))
    if entry is None and len(names) > 1:
        raise InvalidInput("entry", f"{path.name} tunes {len(names)} kernels; name one of {', '.join(names)}")
    wanted = names[0] if entry is None else entry.partition("<")[0]
    chosen = [c for c, name in named if str(name).partition("<")[0] == wanted]
    if not chosen:
        raise InvalidInput("entry", f"{path.name} tunes no {entry}; it tunes {', '.join(names)}")
    return chosen[0]


def _given(call: ScriptCall) -> dict[str, Any]:
    """The values that a call passes, by parameter of `tune_kernel`."""
    return dict(zip(_POSITIONS, call.arguments, strict=False)) | dict(call.keywords)


def _space(path: Path, call: ScriptCall, given: Mapping[str, Any]) -> dict[str, list[Any]]:
    params = given.get("tune_params")
    if not isinstance(params, dict) or not params:
        raise InvalidInput("source", f"{path.name}:{call.line}: tune_params is made while the script runs")
    found: dict[str, list[Any]] = {}
    for name, values in params.items():
        listed = [plain(v) for v in values] if isinstance(values, list | tuple) else []
        if not listed or not all(type(v) in (int, float, bool, str) for v in listed):
            raise InvalidInput(
                "source",
                f"{path.name}:{call.line}: the values of tune_params[{name!r}] are made while it runs",
            )
        found[str(name)] = list(dict.fromkeys(listed))
    return found


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
    given: Mapping[str, Any]
    space: Mapping[str, Sequence[Any]]
    sizes: Mapping[str, int]

    def __post_init__(self) -> None:
        self.remarks: list[str] = []

    def known(self, entry: str, backend: Backend) -> KnownJob:
        names = [str(n) for n in self._listed("block_size_names")] or list(_BLOCK_NAMES)
        block = tuple(
            name if name in self.space else default
            for name, default in zip((*names, *_BLOCK_NAMES[len(names) :]), _BLOCK_DEFAULTS, strict=False)
        )
        grid = self._grid(names)
        positions = [self._argument(a) for a in self._listed("arguments")]
        constants = self.given.get("cmem_args")
        symbols = constants.items() if isinstance(constants, dict) else ()
        constraints = tuple(self._constraints())
        options = self._options(backend)
        shared = self._shared()
        said = (t for p in positions for t in (*p.shape, p.value))
        dimensions = self._dimensions(" ".join([*grid, *block, *constraints, shared, *said]))
        return KnownJob(
            origin=self.origin,
            entry=entry,
            workloads=(dimensions or {"n": 1024},),
            arguments={str(name): self._argument(value) for name, value in symbols},
            positions=tuple(positions),
            grid=_short(grid),
            block=_short(block),
            shared_bytes=shared,
            parameters=tuple(Tunable(n, tuple(v)) for n, v in self.space.items()),
            defaults=self._defaults(constraints, dimensions) if constraints else {},
            constraints=constraints,
            options=options,
            remarks=tuple(self.remarks),
        )

    def _listed(self, name: str) -> Sequence[Any]:
        """The values of an argument that is a list; none for others."""
        given = self.given.get(name)
        return given if isinstance(given, list | tuple) else ()

    def _dimensions(self, used: str) -> dict[str, int]:
        """The sizes that the words of a job name, without those of the space."""
        sizes = {n: v for n, v in self.sizes.items() if n not in self.space}
        return {n: v for n, v in sizes.items() if re.search(rf"\b{n}\b", used)}

    def _left_out(self, what: str) -> None:
        self.remarks.append(f"Not taken over from {self.origin}: {what}.")

    def _grid(self, block_names: Sequence[str]) -> tuple[str, ...]:
        problem = self.given.get("problem_size", UNKNOWN)
        extents = list(problem) if isinstance(problem, list | tuple) else [problem]
        if any(self._expression(e) is None for e in extents):
            self._left_out("the problem's size, which is computed while it runs; grid is a guess")
            return ()
        grid = []
        for axis, extent in zip("xyz", extents, strict=False):
            at = "xyz".index(axis)
            default = [block_names[at]] if at < len(block_names) and block_names[at] in self.space else []
            divisors = self.given.get(f"grid_div_{axis}")
            listed = default if divisors is None else divisors
            if not isinstance(listed, list | tuple) or not all(isinstance(d, str) for d in listed):
                self._left_out(f"grid_div_{axis}, which is a function; grid is a guess")
                return ()
            whole = " * ".join(d if d.isidentifier() else f"({d})" for d in listed)
            text = str(self._expression(extent))
            grid.append(f"ceil_div({text}, {whole.replace('/', '//')})" if whole else text)
        return tuple(grid)

    def _expression(self, value: Any) -> str | None:
        value = value.value if isinstance(value, Number) else value
        if isinstance(value, Size):
            return value.text
        if isinstance(value, str):
            return value
        return str(int(value)) if type(value) is float and value == int(value) else None

    def _argument(self, value: Any) -> KnownArgument:
        if isinstance(value, Array):
            extents = [self._expression(e) for e in value.shape]
            known = () if None in extents else tuple(str(e) for e in extents)
            return KnownArgument(value.dtype, known)
        if isinstance(value, Number):
            if isinstance(value.value, float):
                return KnownArgument(value.dtype, value=repr(value.value))
            text = self._expression(value)
            return KnownArgument(value.dtype, value=text or "")
        return KnownArgument()

    def _constraints(self) -> Iterator[str]:
        restrictions = self.given.get("restrictions") or []
        for restriction in restrictions if isinstance(restrictions, list | tuple) else [restrictions]:
            text = _condition(restriction)
            if text is None:
                self._left_out("a restriction that is a function; write it as an expression of `constraints`")
                continue
            try:
                unknown = Expression(text).names - set(self.space)
            except ExpressionError as exc:
                self._left_out(f"the restriction {text!r}: {exc}")
                continue
            if unknown:
                self._left_out(f"the restriction {text!r}, which names {', '.join(sorted(unknown))}")
                continue
            yield text

    def _options(self, backend: Backend) -> tuple[str, ...]:
        """The options, and macros that Kernel Tuner defines for every kernel."""
        texts = [o for o in self._listed("compiler_options") if isinstance(o, str)]
        refused = refused_options(backend, texts)
        for option in refused:
            self._left_out(f"the compiler option {option!r}")
        fixed = [
            f"{n}={v}" for n, v in zip(_BLOCK_NAMES, _BLOCK_DEFAULTS, strict=True) if n not in self.space
        ]
        macros = ("kernel_tuner=1", *fixed)
        return (*(o for o in texts if o not in refused), *(f"-D{macro}" for macro in macros))

    def _shared(self) -> str:
        shared = self.given.get("smem_args")
        size = shared.get("size", UNKNOWN) if isinstance(shared, dict) else None
        text = "" if size is None else self._expression(size)
        if text is None:
            self._left_out("smem_args, which is a function; write `shared_bytes` of the launch")
        return text or ""

    def _defaults(self, constraints: Sequence[str], dimensions: Mapping[str, int]) -> dict[str, Any]:
        """The first configuration of the space that the restrictions allow."""
        judged = [Expression(text) for text in constraints]
        names = list(self.space)
        for values in itertools.islice(itertools.product(*self.space.values()), _MOST_CONFIGURATIONS):
            configuration = dict(zip(names, values, strict=True))
            if all(e.evaluate({**dimensions, **configuration}) for e in judged):
                return configuration
        self._left_out("a default configuration: none of the first that were tried meets the restrictions")
        return {}


def _condition(restriction: Any) -> str | None:
    """A restriction as an expression; None if it is a function."""
    if isinstance(restriction, str):
        return restriction.strip()
    if not isinstance(restriction, ast.Lambda):
        return None
    parameters = [a.arg for a in restriction.args.args]
    owner = parameters[0] if len(parameters) == 1 else ""

    class Names(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if (
                    name == owner
                ):
                    return ast.Name(key, ast.Load())
            return self.generic_visit(node)

    return ast.unparse(Names().visit(restriction.body))


def _short(extents: Sequence[str]) -> tuple[str, ...]:
    """Extents without those of 1 at the end."""
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == "1":
        kept.pop()
    return tuple(kept)
