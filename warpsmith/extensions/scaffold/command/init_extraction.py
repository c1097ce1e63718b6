"""`init` for a file that does not compile as it lies: the kernel is taken out with what it reaches."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.extensions.scaffold.command import near_files
from warpsmith.extensions.scaffold.command.init import InitOptions, found_source, scaffold, scaffold_job
from warpsmith.extensions.scaffold.extraction.framework_types import number_header
from warpsmith.extensions.scaffold.extraction.taken_out import File, Pool, Taken, taken_out, without_header
from warpsmith.extensions.scaffold.job_file import choose_kernel
from warpsmith.extensions.scaffold.known import nothing_known
from warpsmith.extensions.scaffold.reading.struct_declarations import index_structs
from warpsmith.extensions.scaffold.reading.switched_off import avoiding_error
from warpsmith.extensions.scaffold.yaml_text import TODO
from warpsmith.job_files.kernel_sources import FoundSource
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.lexing.tokens import blank

Compile = Callable[[Job], Compiled | Rejected | None]
"""Compiles a job's own kernel; None if nothing here can."""

_TRIALS = 12
"""Limit on the compilations."""
_TRIAL_SECONDS = 60.0
"""Seconds after which no further compilation is begun."""
_UNKNOWN = re.compile(
    r"use of undeclared identifier '(\w+)'|unknown type name '(\w+)'|implicit declaration of function '(\w+)'"
    r'|identifier "(\w+)" is undefined|has no member "(\w+)"|name followed by "::"[^\n]*\n\s*[^\n]*?(\w+)::'
    r"|variable has incomplete type '(?:struct )?(\w+)"
)
_UNKNOWN_TYPE = re.compile(r"unknown type name '(\w+)'")
_UNKNOWN_VALUE = re.compile(r"use of undeclared identifier '(\w+)'")
_AT_LINE = re.compile(r"kernel\.c[lu][:(](\d+)")
_ERROR = re.compile(r"\s*#\s*error\b")
_VECTOR = re.compile(r"\w*\D(2|3|4|8|16)")
_WHOLE = re.compile(r"\w*(?:int|idx|index|size|dim|len|count|offset)\w*", re.I)
"""Names of types that stand for whole numbers."""
_GUESSED_VALUE = "16"
_NO_HEADER = re.compile(
    r'cannot open source file "([^"]+)"|fatal error: ([^\s:]+): No such file|\'([^\']+)\' file not found'
)
_MOST_NAMES = 12
"""Limit on the headers and names of one text that are shown."""


@dataclass
class _State:
    """Files, macros and names found so far for a kernel's own source."""

    own: Path
    dialect: Dialect
    files: list[File]
    defines: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    """Names that are declared in the files and that the kernel itself does not reach."""
    tried: set[str] = field(default_factory=set)
    toolkit: dict[str, None] = field(default_factory=dict)
    """Names of the toolkit's headers that a number type needs."""

    def resolve(self, names: Iterable[str], types: Iterable[str], values: Iterable[str] = ()) -> bool:
        """Find out what these names are; False if nothing new is known of any.

        Args:
            types: those that stand for a type.
            values: those that stand for a number.
        """
        kinds, numbers = set(types), set(values)
        found = [self._resolved(n, n in kinds, n in numbers) for n in names if n not in self.tried]
        return any(found)

    def _resolved(self, name: str, is_type: bool, is_value: bool) -> bool:
        self.tried.add(name)
        if self.dialect is not Dialect.OPENCL and (header := number_header(name, self.dialect)):
            self.toolkit[header] = None
            return True
        if Pool(self.files, self.dialect).declaring(name):
            self.also.append(name)
            return True
        file = near_files.declaring(self.own, name, self.dialect)
        if file is not None and file.name not in {f.name for f in self.files}:
            self._add(file, name)
            self.also.append(name)
            self.said.append(f"{name} is as {file.name} has it.")
            return True
        is_local = self._is_local(name)
        near = near_files.number_type(self.own, name) if is_type else None
        near = near or (None if is_local else near_files.value_of(self.own, name))
        if near is not None and near[0] != name:
            self.defines[name] = near[0]
            self.said.append(f"{name}={near[0]} as {near[1]} has it.")
            return True
        if self.dialect is not Dialect.OPENCL or not (is_type or (is_value and not is_local)):
            return False
        self.defines[name] = guess = _GUESSED_VALUE if is_value else _guessed_type(name)
        self.said.append(f"{TODO}: the host program defines {name}; {guess} is a guess.")
        return True

    def _add(self, file: File, word: str) -> None:
        """Put a file before the first that has a word."""
        found = re.compile(rf"\b{re.escape(word)}\b")
        at = next((n for n, f in enumerate(self.files) if found.search(f.text)), 0)
        self.files.insert(at, file)

    def _is_local(self, name: str) -> bool:
        """True if the kernel's file declares a variable of that name, which a macro would change."""
        word = re.escape(name)
        declared = rf"[;{{}}(]\s*(?:const\s+)?[A-Za-z_]\w*[\s*]+{word}\s*(?:=(?!=)|;|\[)"
        kinds = r"(?:u?int|float|double|half|u?long|u?short|u?char|unsigned|size_t|bool)\d*"
        passed = rf"\b{kinds}\s*\*?\s+{word}\s*[,)]"
        return re.search(f"{declared}|{passed}", blank(self.files[-1].text)) is not None

    def without(self, header: str) -> bool:
        """Find a header near the kernel, or do without it; False if that was tried."""
        if header in self.tried:
            return False
        self.tried.add(header)
        file = near_files.header(self.own, header)
        if file is not None:
            self._add(file, header.rpartition("/")[2])
        else:
            self.dropped.append(header)
        return True


def _guessed_type(name: str) -> str:
    """A type of OpenCL for a name that the host program defines."""
    lanes = _VECTOR.fullmatch(name)
    element = "int" if _WHOLE.fullmatch(name) else "float"
    return f"{element}{lanes.group(1)}" if lanes else element


def taken_scaffold(
    sources: Sequence[Path], target: Path, wanted: InitOptions, compiled: Compile
) -> str | None:
    """The job file of a kernel that was taken out of its file; None if it does not compile so either.

    Raises:
        InvalidInput: see `scaffold`.
    """
    found = found_source(sources, target, wanted)
    defines = dict(d.partition("=")[::2] for d in wanted.defines)
    kernel, _ = choose_kernel(find_kernels(found.text, found.dialect, defines), found.shown, wanted.entry)
    state = _State(sources[-1], found.dialect, list(_files(found, sources[-1])))
    until = time.monotonic() + _TRIAL_SECONDS
    for _ in range(_TRIALS):
        if time.monotonic() > until:
            return None
        taken = taken_out(Pool(state.files, found.dialect), kernel.name, state.also)
        if taken is None or len(taken.text.encode()) > MAX_SOURCE_BYTES:
            return None
        text = _text(sources, target, wanted, taken, state, found.shown)
        job = scaffold_job(text, sources, target, wanted)
        if job is None:
            if not state.resolve(*_open_types(taken, found.dialect, {**defines, **state.defines}, kernel)):
                return None
            continue
        if state.resolve(_guessed(job), ()):
            continue
        outcome = compiled(job)
        if not isinstance(outcome, Rejected):
            return text if outcome is not None else None
        if not (_learn(state, outcome) or _avoid_errors(state, outcome, job, defines)):
            return None
    return None


def with_near_values(sources: Sequence[Path], target: Path, wanted: InitOptions) -> InitOptions:
    """The options, with the values that files near the kernel give macros which nothing else defines.

    Raises:
        InvalidInput: see `scaffold`.
    """
    job = scaffold_job(scaffold(sources, target, wanted), sources, target, wanted)
    for name in () if job is None or wanted.known is not nothing_known else _guessed(job):
        found = near_files.value_of(sources[-1], name)
        if found is not None:
            value, place = found
            said = f"{name}={value} as {place} has it."
            wanted = replace(
                wanted, defines=(*wanted.defines, f"{name}={value}"), remarks=(*wanted.remarks, said)
            )
    return wanted


def _guessed(job: Job) -> list[str]:
    """Macros that nothing defines; a job of OpenCL has them as parameters with one value."""
    return [p.name for p in job.parameters if len(p.values) == 1]


def _files(found: FoundSource, own: Path) -> Iterator[File]:
    for path, text in reversed(tuple(found.headers.files.items())):
        yield File(path, text)
    for _, name in found.headers.missing:
        near = near_files.header(own, name)
        if near is not None:
            yield near
    yield File(found.shown, found.text)


def _text(
    sources: Sequence[Path], target: Path, wanted: InitOptions, taken: Taken, state: _State, shown: str
) -> str:
    source = "".join(f"#include <{name}>\n" for name in state.toolkit) + taken.text
    for name in state.dropped:
        source = without_header(source, name)
    left = [*taken.headers_left_out, *state.dropped]
    headers = f" and the headers {', '.join(left[:_MOST_NAMES])}" if left else ""
    remarks = [
        *wanted.remarks,
        f"Taken out of {shown}; {taken.functions_left_out} functions{headers} are left behind.",
    ]
    given = (*wanted.defines, *(f"{name}={value}" for name, value in state.defines.items()))
    return scaffold(
        sources, target, replace(wanted, text=source, remarks=(*remarks, *state.said), defines=given)
    )


def _open_types(
    taken: Taken, dialect: Dialect, defines: Mapping[str, str], kernel: KernelDefinition
) -> tuple[list[str], list[str]]:
    """Names of types of the kernel's arguments that nothing so far declares."""
    found = find_kernels(taken.text, dialect, defines)
    kernels = [k for k in found if k.name == kernel.name]
    own = {p.name for k in kernels for p in k.template}
    arguments = [a for k in kernels for a in k.arguments]
    bases = [a.base for a in arguments if a.dtype is None and a.base not in own]
    bases += [m.base for m in index_structs((taken.text,), defines).members_of(arguments) if m.dtype is None]
    names = [b.split()[-1].split("::")[-1] for b in bases if b not in ("", "void") and "<" not in b]
    return names, names


def _avoid_errors(state: _State, refused: Rejected, job: Job, defines: Mapping[str, str]) -> bool:
    """Give macros the values with which no `#error` of the source is reached; False if none are new."""
    rows = job.kernel.text.split("\n")
    for number in map(int, _AT_LINE.findall(f"{refused.reason}\n{refused.log}")):
        if not 0 < number <= len(rows) or not _ERROR.match(rows[number - 1]):
            continue
        known = {**defines, **state.defines}
        for name, value in avoiding_error(job.kernel.text, number, known).items():
            if known.get(name) != value and name not in defines:
                state.defines[name] = value
                state.said.append(f"{TODO}: {name}={value} is a guess, with which the source has no #error.")
                return True
    return False


def _learn(state: _State, refused: Rejected) -> bool:
    log = f"{refused.reason}\n{refused.log}"
    for match in _NO_HEADER.finditer(log):
        if state.without(next(g for g in match.groups() if g)):
            return True
    names = [next(g for g in m.groups() if g) for m in _UNKNOWN.finditer(log)]
    types = _UNKNOWN_TYPE.findall(log)
    if types and state.resolve(dict.fromkeys(types), types):
        return True  # what else is unknown may be declared with them
    return state.resolve(dict.fromkeys(names), types, _UNKNOWN_VALUE.findall(log))
