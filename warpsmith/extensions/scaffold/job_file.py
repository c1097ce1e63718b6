"""A job file for a kernel that exists only as source: facts from the source, and marked guesses."""

import json
import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.argument_line import ArgumentLine, Fields, with_numbers
from warpsmith.extensions.scaffold.guesses import ELEMENTS, BindingHints, Bindings, bind
from warpsmith.extensions.scaffold.indices.index_space import IndexSpace, SourceContext, index_space
from warpsmith.extensions.scaffold.known import KnownJob, nothing_known
from warpsmith.extensions.scaffold.launches.host_launch import HostLaunch, host_launches, launched
from warpsmith.extensions.scaffold.lines.arguments import Sizes, argument_line, dimensions_of
from warpsmith.extensions.scaffold.lines.launch import fixed_block, launch_lines, most_threads, usual_block
from warpsmith.extensions.scaffold.lines.reference import reference_lines
from warpsmith.extensions.scaffold.lines.structs import StructWriter
from warpsmith.extensions.scaffold.lines.symbols import function_bodies, symbol_lines
from warpsmith.extensions.scaffold.placeholder_sizes import above_zero, fitting
from warpsmith.extensions.scaffold.reading.struct_declarations import StructIndex, index_structs
from warpsmith.extensions.scaffold.stand_ins import stand_ins
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_flow, yaml_word
from warpsmith.source.declarations.named_constants import FoundConstant, find_constants, integer_value
from warpsmith.source.declarations.type_names import enumerations
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.lexing.tokens import blank

_MAX_SHOWN = 20
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.M)
_LIKE_MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_DECLARED = re.compile(r"\b(?:enum\b[^{;]*\{[^}]*\}|(?:const|constexpr|using|typedef|struct|class)\b[^;{]*)")
_OF_LANGUAGE = re.compile(
    r"(?:CLK|CL|M|FLT|DBL|HALF|INT|UINT|LONG|ULONG|CHAR|UCHAR|SHRT|USHRT|SCHAR|SIZE|CUDART|CUDA|__)_|INFINITY$|NAN$|NULL$"
    r"|MAXFLOAT$|HUGE_VALF?$|RAND_MAX$|EOF$|TRUE$|FALSE$"
)
_HEADER_LINES = 20
"""Limit on the lines between a kernel's name and its body."""


@dataclass(frozen=True)
class Given:
    """Knowledge about a source besides its text."""

    lines: tuple[str, ...] = ()
    """Lines of the job's `kernel` with the source; empty: `source_file`."""
    header_lines: tuple[str, ...] = ()
    """Lines of the job's `kernel` that lead to its headers."""
    defines: Mapping[str, str] = field(default_factory=dict)
    """Macros to be given to the compiler."""
    headers: tuple[str, ...] = ()
    """Texts of headers that the source includes."""
    element: str = ELEMENTS[0]
    """Guess for the type of a buffer's elements, if a template leaves it open."""
    known: Callable[[KernelDefinition], KnownJob] = nothing_known
    """Facts about the kernel's job that take the place of guesses."""
    first_line: int = 1
    """Line of the file at which the first line of the source's text stands."""
    host_texts: Mapping[str, str] = field(default_factory=dict)
    """Files that may launch the kernel, by name, with the headers that their macros come from."""


def job_scaffold(
    source_text: str, path_text: str, dialect: Dialect, entry: str | None, given: Given | None = None
) -> str:
    """A job file, as YAML, for one kernel of a source.

    It is a valid job with placeholder sizes, unless a job cannot pass an argument: its `dtype` is then
    `TODO`, and a comment says what the argument is.

    Args:
        path_text: path of the source in the job file.
        entry: the kernel's name, or a C++ name expression with its template arguments.

    Raises:
        InvalidInput: the source has no such kernel, or several; the message names them.
    """
    given = given or Given()
    kernels = find_kernels(source_text, dialect, given.defines, given.headers)
    kernel, twins = choose_kernel(kernels, path_text, entry)
    if entry is None or "<" not in entry:
        kernel = _without_packs(kernel)
    texts = (*given.headers, source_text)
    enumerators = dict(ChainMap(*map(enumerations, reversed(texts))))
    index = index_structs(texts, given.defines)
    bindings = bind(kernel, entry, _surroundings(index, enumerators, source_text, given))
    functions = _functions(kernel, bindings, given)
    known = given.known(kernel)
    constants = (*_given_constants(given.defines), *find_constants(source_text))
    space = _space(kernel, source_text, dialect, bindings, constants, given)
    dimensions = known.dimensions() or dimensions_of(kernel, space)
    extent = next(iter(dimensions.values()))[0]
    known_sizes = Sizes(dimensions, space)
    grid = known_sizes.named(space.grid) or [f"ceil_div({extent}, {(known.block or space.block)[0]})"]
    arguments = []
    for n, a in enumerate(kernel.arguments):
        structs = StructWriter(index, enumerators, extent)
        line = argument_line(n, a, kernel, bindings, known_sizes, structs)
        arguments.append(known.informed(line, a.name))
    described = [with_numbers(a.fields) for a in arguments]
    if not known.workloads:
        dimensions = _sized(dimensions, described, grid)
    found = _symbols(kernel, (source_text, *given.headers), constants)
    symbols = [known.informed(s, s.fields.get("name", "")) for s in found]
    above = given.first_line - 1
    lines = [
        f"# Job for the kernel {kernel.qualified_name} of {path_text} (line {above + kernel.line}).",
        f"# Look at every {TODO}: shapes, roles and values there are guesses.",
        *(f"# There is another definition of it in line {above + line}, not used here." for line in twins),
        f"name: {yaml_word(re.sub(r'^[^A-Za-z0-9]+', '', kernel.name)[:100] or 'kernel')}",
        "kernel:",
        f"  backend: {dialect.backend.value}",
        *_source(functions, given, path_text),
        *_options(given, known),
        *_entry(kernel, bindings, entry, functions),
        *_arguments(arguments, symbols),
        "  launch:",
        *launch_lines(kernel, dialect, space, grid, known),
        "workloads:",
        *_workloads(dimensions, known),
        *reference_lines(kernel, described, list(map(with_numbers, _behind(arguments, symbols)))),
        *known.tolerances(described),
        "budget: {rounds: 2, trials: 200, seconds: 300}",
        *(f"# {remark}" for remark in known.remarks),
    ]
    if known.parameters:
        lines += known.space()
    else:
        lines += _parameters(_undefined(kernel, source_text, given), dialect)
        lines += _tunables(kernel, constants, bindings)
    return "\n".join(lines) + "\n"


def _sized(
    dimensions: Mapping[str, tuple[str, int]], buffers: Sequence[Fields], grid: Sequence[str]
) -> dict[str, tuple[str, int]]:
    """The dimensions with sizes for which the buffers fit into a device and no extent is below 1."""
    shapes = [str(e) for fields in buffers for e in fields.get("shape", ())]
    return above_zero(fitting(dimensions, buffers), [*grid, *shapes])


def _without_packs(kernel: KernelDefinition) -> KernelDefinition:
    """The kernel without its parameter packs, which are empty unless an entry fills them."""
    kept = tuple(a for a in kernel.arguments if not a.type_text.endswith("..."))
    return replace(kernel, arguments=kept)


def _behind(arguments: Iterable[ArgumentLine], symbols: Iterable[ArgumentLine]) -> Iterator[Fields]:
    """Fields of the memory that is no argument."""
    yield from (fields for a in arguments for fields in a.buffers)
    yield from (s.fields for s in symbols if s.fields)


@lru_cache(maxsize=4)
def _launches(
    texts: tuple[tuple[str, str], ...],
    kernel: KernelDefinition,
    dialect: Dialect,
    numbers: tuple[tuple[str, int], ...],
) -> tuple[HostLaunch, ...]:
    # A compiler refuses several scaffolds of one kernel; its launches take seconds to read.
    return host_launches(dict(texts), kernel, dialect, dict(numbers))


def _space(
    kernel: KernelDefinition,
    text: str,
    dialect: Dialect,
    bindings: Bindings,
    constants: Sequence[FoundConstant],
    given: Given,
) -> IndexSpace:
    """Index space that the kernel's text and host code that launches it show, with at least a block."""
    fixed = {name: int(value) for name, value in bindings.values.items() if value.isdecimal()}
    numbers = {c.name: c.value for c in constants} | fixed
    threads = 0 if dialect is Dialect.OPENCL else most_threads(kernel, numbers)
    block = fixed_block(kernel, dialect, numbers)
    around = SourceContext(block, threads, fixed, given.defines, given.headers)
    space = index_space(text, dialect.backend, kernel.name, around)
    if not space.block:
        space = replace(space, block=usual_block(kernel, dialect, numbers))
    if not given.host_texts:
        return space
    shared = tuple((c.name, c.value) for c in constants if not c.is_local)
    return launched(space, _launches(tuple(given.host_texts.items()), kernel, dialect, shared), kernel)


def _surroundings(index: StructIndex, known: Mapping[str, str], source: str, given: Given) -> BindingHints:
    has_float8 = any("__nv_fp8_e4m3" in text for text in (source, *given.headers))
    return BindingHints(
        index,
        known,
        re.search(r"\busing\s+namespace\b", source) is not None,
        given.element,
        "__nv_fp8_e4m3" if has_float8 else "int8_t",
    )


def _functions(kernel: KernelDefinition, bindings: Bindings, given: Given) -> dict[str, str]:
    """Functions to be added to the source, by name; none if the job names the source's file."""
    if not given.lines or not given.lines[0].startswith("source:"):
        return {}
    return dict(stand_ins(kernel.template, bindings.unknown, bindings.values))


def _source(functions: Mapping[str, str], given: Given, path_text: str) -> Iterator[str]:
    lines = list(given.lines or [f"source_file: {json.dumps(path_text)}"])
    lines += (f"  {definition}" for definition in functions.values())
    if functions:
        lines.append(f"# {TODO}: the host program has {', '.join(functions)}; here it is made up.")
    yield from (f"  {line}" if line else "" for line in (*lines, *given.header_lines))


def _given_constants(defines: Mapping[str, str]) -> Iterator[FoundConstant]:
    for name, value in defines.items():
        number = integer_value(value, {})
        if number is not None:
            yield FoundConstant(name, number, "macro given with -D", 0)


def _options(given: Given, known: KnownJob) -> Iterator[str]:
    options = [*known.options, *(f"-D{name}={value}" for name, value in given.defines.items())]
    if options:
        yield f"  options: [{', '.join(map(json.dumps, options))}]"


def _workloads(dimensions: Mapping[str, tuple[str, int]], known: KnownJob) -> Iterator[str]:
    for workload in known.workloads:
        yield f"  - dimensions: {yaml_flow(workload)}"
    if not known.workloads:
        sizes = yaml_flow(dict(dimensions.values()))
        yield f"  - dimensions: {sizes}  # {TODO}: the sizes that matter, a line each"


def _undefined(kernel: KernelDefinition, text: str, given: Given) -> list[str]:
    """Macros that the kernel uses, directly or through other macros, and that nothing here defines."""
    texts = [blank(t) for t in (text, *given.headers)]
    whole = "\n".join(texts)
    bodies = {m.group(1): m.group(2) for t in texts for m in _MACRO.finditer(t)}
    known = bodies.keys() | given.defines.keys()
    known |= {w for t in texts for w in re.findall(r"\w+", " ".join(_DECLARED.findall(t)))}
    known |= {a.name for a in kernel.arguments} | {p.name for p in kernel.template}
    known |= set(re.findall(r"\b(\w+)\s*\(", kernel.body))
    used = _expanded(re.sub(r"^\s*#.*$", "", blank(kernel.body), flags=re.M), bodies)
    likely = (w for w in used if _LIKE_MACRO.fullmatch(w) and not _OF_LANGUAGE.match(w))
    return [w for w in likely if w not in known and not _declares(whole, w)][:_MAX_SHOWN]


def _expanded(text: str, bodies: Mapping[str, str]) -> Iterable[str]:
    """The words of a text, and of the macros that it uses, each once."""
    waiting = [text]
    seen: dict[str, None] = {}
    while waiting:
        words = [w for w in re.findall(r"\b[A-Za-z_]\w*\b", waiting.pop()) if w not in seen]
        seen.update(dict.fromkeys(words))
        waiting += [bodies[w] for w in dict.fromkeys(words) if w in bodies]
    return seen


def _declares(text: str, name: str) -> bool:
    """True if a text declares a name as a variable or a member, or uses it as a type."""
    begin = r"(?:^|[;{}(,])\s*"
    words = r"(?:(?!return\b|case\b|goto\b|else\b)[A-Za-z_]\w*\s+)"
    variable = rf"{begin}{words}+(?:\w+\s*\*+\s*|\*+\s*)?{name}\s*(?:=(?!=)|[;\[,)])"
    further = rf",\s*\*?{name}\s*(?:=(?!=)|;)"
    kind = rf"{begin}{words}*{name}\s*\*?\s+\*?[A-Za-z_]\w*|\}}\s*{name}\s*;|[.>]\s*{name}\b"
    return re.search(f"{variable}|{further}|{kind}", text) is not None


def _parameters(names: list[str], dialect: Dialect) -> Iterator[str]:
    """Lines with these macros as parameters. Macros of CUDA may come from missing headers and stay a
    comment."""
    if not names:
        return
    mark = "" if dialect is Dialect.OPENCL else "# "
    yield f"# {TODO}: nothing here defines these. init -D NAME=VALUE does; as parameters they can be tuned."
    yield f"{mark}parameters:"
    for name in names:
        yield f"{mark}  - {{name: {yaml_word(name)}, values: [16]}}  # {TODO}: what it is"


def choose_kernel(
    kernels: tuple[KernelDefinition, ...], path_text: str, entry: str | None
) -> tuple[KernelDefinition, list[int]]:
    """The requested kernel, and the lines of other definitions of the same name.

    Raises:
        InvalidInput: there is none, or several; the message names them.
    """
    names = list(dict.fromkeys(k.qualified_name for k in kernels))
    if not names:
        raise InvalidInput("source", f"{path_text}: no kernel definition found")
    listed = ", ".join(names[:_MAX_SHOWN]) + (", ..." if len(names) > _MAX_SHOWN else "")
    chosen = names if entry is None else _named(names, entry)
    if entry is None and len(chosen) > 1:
        raise InvalidInput("entry", f"{path_text} defines {len(names)} kernels; name one of {listed}")
    if len(chosen) != 1:
        raise InvalidInput("entry", f"{entry}: {len(chosen)} such kernels in {path_text}; it has {listed}")
    found = sorted((k for k in kernels if k.qualified_name == chosen[0]), key=lambda k: not k.is_taken)
    kernel = _specialised(found, entry)
    return kernel, [k.line for k in found if k is not kernel]


def _specialised(found: list[KernelDefinition], entry: str | None) -> KernelDefinition:
    """The definition of a name that fits an entry's template arguments best."""
    given = re.search(r"<(.*)>", entry or "")
    special = [k for k in found if given and _tight(k.specialisation) == _tight(given.group(1))]
    return (special or [k for k in found if not k.specialisation] or found)[0]


def _named(names: list[str], entry: str) -> list[str]:
    """Qualified names that an entry may mean."""
    base = re.sub(r"\s", "", entry.split("<", 1)[0]).removeprefix("::")
    return [base] if base in names else [n for n in names if f"::{n}".endswith(f"::{base}")]


def _tight(text: str) -> str:
    return re.sub(r"\s", "", text)


def _entry(
    kernel: KernelDefinition, bindings: Bindings, entry: str | None, made: Collection[str]
) -> Iterator[str]:
    if bindings.guessed:
        guesses = ", ".join(f"{n} = {bindings.values[n]}" for n in bindings.guessed)
        yield f"  # {TODO}: template arguments are guesses: {guesses}."
    open_names = [name for name in bindings.unknown if name not in made]
    if open_names:
        yield f"  # {TODO}: put types or values in the place of {', '.join(open_names)}."
    name = kernel.name if kernel.is_extern_c else kernel.qualified_name
    listed = kernel.specialisation or ", ".join(bindings.written)
    if entry is not None and "<" in entry:
        name += entry[entry.index("<") :].strip()
    elif listed or kernel.template:
        name += f"<{listed}>"
    yield f"  entry: {yaml_word(name)}"


def _symbols(
    kernel: KernelDefinition, texts: Sequence[str], constants: Iterable[FoundConstant]
) -> list[ArgumentLine]:
    """Lines of the constant memory that the kernel reads and host code fills."""
    whole = [blank(text) for text in texts]
    bodies = {m.group(1): m.group(2) for text in whole for m in _MACRO.finditer(text)}
    for text in whole:
        bodies |= function_bodies(text)
    used = set(_expanded(blank(kernel.body), bodies))
    return list(symbol_lines(texts, used, {c.name: c.value for c in constants}))


def _arguments(arguments: list[ArgumentLine], symbols: Sequence[ArgumentLine]) -> Iterator[str]:
    if not arguments:
        yield f"  arguments: []  # {TODO}: this kernel has none, and a job compares what a kernel writes"
        return
    if not any(a.is_written for a in arguments):
        yield f"  # {TODO}: one argument needs the role output or inout: a job compares what a kernel writes."
    yield "  arguments:"
    yield from (a.item() for a in arguments)
    buffers = [fields for a in arguments for fields in a.buffers]
    if buffers:
        yield f"  # {TODO}: what the pointers in structs lead to: shapes, roles, or no buffer at all (null)."
    if buffers or any(s.fields for s in symbols):
        yield "  buffers:"
    yield from (ArgumentLine(fields).item() for fields in buffers)
    yield from (s.item() for s in symbols)


def _tunables(
    kernel: KernelDefinition, constants: tuple[FoundConstant, ...], bindings: Bindings
) -> Iterator[str]:
    """Constants that the kernel uses, as commented-out parameters."""
    used = f"{kernel.body} {kernel.launch_bounds}"
    shown = [
        (c.name, c.value, f"{c.kind}, line {c.line}")
        for c in constants
        if 2 <= c.value <= 4096
        and (not c.is_local or kernel.line <= c.line <= kernel.line + kernel.body.count("\n") + _HEADER_LINES)
        and not re.fullmatch(r"(?i)k?warp_?size", c.name)
        and re.search(rf"\b{re.escape(c.name)}\b", used)
    ]
    for p in kernel.template[: len(bindings.written)]:
        value = bindings.values.get(p.name, "")
        if p.kind == "value" and value.isdecimal() and int(value) > 1:
            shown.append((p.name, int(value), f"template parameter: write {p.name} for {value} in the entry"))
    if not shown:
        return
    yield "# Integer constants of the source; the rules may lift them by themselves. To tune one on your own:"
    yield "# parameters:"
    for name, number, how in shown[:_MAX_SHOWN]:
        values = sorted({max(1, number // 2), number, number * 2})
        yield f"#   - {{name: {yaml_word(name)}, values: {values}, default: {number}}}  # {how}"
