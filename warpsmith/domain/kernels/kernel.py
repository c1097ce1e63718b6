"""Kernels: device source, entry point, arguments and launch. Never host code."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, StringConstraints, ValidationInfo, model_validator

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.device import Backend
from warpsmith.domain.kernels.headers import MAX_FILES, files_problem, folders_of, with_empty
from warpsmith.domain.kernels.launch import Entry, Launch, SequencedLaunch
from warpsmith.domain.kernels.sequence_checks import sequence_problem
from warpsmith.domain.kernels.specialisation import Constexpr
from warpsmith.domain.language import language_named
from warpsmith.domain.plain_data import STORED
from warpsmith.domain.reserved_words import reserved_as_argument

MAX_SOURCE_BYTES = 256 * 1024
MAX_LAUNCHES = 16
"""Limit on the launches of a sequence."""


CompileOption = Annotated[str, StringConstraints(max_length=120)]


class Compiler(StrEnum):
    """CUDA compilers. `auto` takes NVRTC, and nvcc for what NVRTC cannot read."""

    AUTO = "auto"
    NVRTC = "nvrtc"
    NVCC = "nvcc"


def _of_the_first(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name not in ("entry", "launch")]


class Kernel(Frozen):
    """Device source, entry point, arguments and launch; or several launches, one after the other."""

    model_config = ConfigDict(json_schema_extra=_of_the_first)

    backend: Backend
    source: str | None = Field(default=None, max_length=MAX_SOURCE_BYTES)
    """The source text. A job file may give `source_file` instead; the client reads it."""
    source_file: str | None = Field(default=None, max_length=500)
    entry: Entry
    """Function name, or a C++ name expression such as `ns::kernel<__half, 8>` (CUDA). Of a sequence: that of
    its first launch, and left out in a job."""
    options: tuple[CompileOption, ...] = Field(default=(), max_length=32)
    """Compile options; only those on the allow-list of the back end are accepted."""
    includes: tuple[Identifier, ...] = Field(default=(), max_length=8)
    """Names of include folders, as the operator permits them."""
    files: dict[str, str] = Field(default={}, max_length=MAX_FILES)
    """Headers sent with the kernel: texts by relative path. The client collects them."""
    include_dirs: tuple[str, ...] = Field(default=(), max_length=16)
    """Folders of `files` that are searched for headers, in this order; the root is searched last. In a job
    file: folders on this machine, relative to the job file; the client sends the headers that are included
    from them."""
    empty_headers: tuple[str, ...] = Field(default=(), max_length=MAX_FILES)
    """Names of absent headers that only host code needs; they are sent as empty `files`."""
    compiler: Compiler = Compiler.AUTO
    arguments: tuple[Argument, ...] = Field(min_length=1, max_length=64)
    buffers: tuple[Argument, ...] = Field(default=(), max_length=64)
    """Buffers that the kernel gets only by addresses in structs and in arrays of addresses; and symbols:
    variables of the source that host code would fill, by their names there."""
    constexprs: dict[Identifier, Constexpr] = Field(default={}, max_length=64)
    """Triton: values of the `tl.constexpr` parameters, and of the launch options, that are not searched."""
    launch: Launch
    """Launch geometry; for a sequence that of its first launch, and left out in a job."""
    launches: tuple[SequencedLaunch, ...] = Field(default=(), max_length=MAX_LAUNCHES)
    """A sequence: launches in order, timed and checked as one, instead of `entry` and `launch`."""

    @model_validator(mode="before")
    @classmethod
    def _begin_with_the_first(cls, data: Any) -> Any:
        launches = data.get("launches") if isinstance(data, dict) else None
        first = launches[0] if isinstance(launches, list | tuple) and launches else None
        if isinstance(first, SequencedLaunch):
            first = {"entry": first.entry, "launch": first.launch}
        if not isinstance(first, dict):
            return data
        return {**{name: first[name] for name in ("entry", "launch") if name in first}, **data}

    @model_validator(mode="before")
    @classmethod
    def _complete_for_the_language(cls, data: Any) -> Any:
        language = language_named(data.get("backend")) if isinstance(data, dict) else None
        return data if language is None else language.complete(data)

    @model_validator(mode="before")
    @classmethod
    def _send_empty_headers(cls, data: Any) -> Any:
        names = data.get("empty_headers") if isinstance(data, dict) else None
        files = data.get("files", {}) if isinstance(data, dict) else None
        if not isinstance(names, list | tuple) or not isinstance(files, dict):
            return data
        return {**data, "files": with_empty(files, (n for n in names if isinstance(n, str)))}

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if (self.source is None) == (self.source_file is None):
            raise ValueError("give exactly one of source and source_file")
        self._check_files()
        for field, text in (("source", self.source or ""), ("entry", self.entry)):
            if "\0" in text:
                raise ValueError(f"{field}: has a NUL character, where a compiler would stop reading")
        names: set[str] = set()
        for place, argument in self.placed():
            if argument.name in names:
                raise ValueError(f"{place}.name: argument {argument.name} is declared twice")
            names.add(argument.name)
            words = reserved_as_argument(argument.name, self.backend.language)
            if words and info.context is not STORED:
                raise ValueError(f"{place}.name: {argument.name!r} {words}; choose another name")
        if not any(a.is_mutated for a in self.declared):
            raise ValueError("arguments: none has role output or inout, so nothing could be compared")
        self._check_addresses()
        problem = sequence_problem(self.entry, self.launch, self.launches, self.arguments)
        if problem:
            raise ValueError(problem)
        language = self.backend.language
        if problem := language.problem(self):
            raise ValueError(problem)
        if self.constexprs and not language.specialises:
            raise ValueError("constexprs: only Triton kernels have them; use parameters, or define macros")
        return self

    def placed(self) -> Iterator[tuple[str, Argument]]:
        """Arguments and buffers, each with its field."""
        yield from ((f"arguments.{n}", a) for n, a in enumerate(self.arguments))
        yield from ((f"buffers.{n}", a) for n, a in enumerate(self.buffers))

    def placed_launches(self) -> Iterator[tuple[str, Launch]]:
        """The launches, each with its field."""
        if not self.launches:
            yield "launch", self.launch
        yield from ((f"launches.{n}.launch", step.launch) for n, step in enumerate(self.launches))

    @property
    def declared(self) -> tuple[Argument, ...]:
        """Arguments, and the buffers to which they lead."""
        return self.arguments + self.buffers

    def _check_addresses(self) -> None:
        memory = {
            a.name
            for a in self.declared
            if (a.is_buffer and a.image is None and a.role not in (Role.SCRATCH, Role.SYMBOL))
            or a.role is Role.POINTERS
        }
        led_to = set()
        for place, argument in self.placed():
            for field, name in argument.targets():
                if name not in memory:
                    known = ", ".join(sorted(memory))
                    raise ValueError(f"{place}.{field}: no buffer {name!r} is declared; declared are {known}")
                led_to.add(name)
        for n, argument in enumerate(self.arguments):
            if argument.role is Role.SYMBOL:
                raise ValueError(
                    f"arguments.{n}.role: {argument.name} is a symbol, which no launch passes; list it under "
                    "kernel.buffers"
                )
        for n, argument in enumerate(self.buffers):
            if argument.role is Role.SYMBOL:
                continue
            if argument.name not in memory:
                raise ValueError(
                    f"buffers.{n}.role: {argument.name} is {argument.role.value}; only buffers, pointers "
                    "and symbols can stand here"
                )
            if argument.name not in led_to:
                raise ValueError(f"buffers.{n}.name: nothing leads to {argument.name}")

    def _check_files(self) -> None:
        problem = files_problem(self.files)
        if problem:
            raise ValueError(f"files: {problem}")
        for n, name in enumerate(self.empty_headers):
            if self.files.get(name):
                raise ValueError(
                    f"empty_headers.{n}: {name!r} was found, and its text is sent; take it off this list"
                )
        known = folders_of(self.files)
        for n, folder in enumerate(self.include_dirs):
            if folder not in known:
                raise ValueError(
                    f"include_dirs.{n}: {folder!r} is no folder of kernel.files; the service reads no "
                    "files: send the headers as kernel.files, as the command line does"
                )

    @property
    def steps(self) -> tuple[SequencedLaunch, ...]:
        """The launches of a sequence, or the only one."""
        every = tuple(a.name for a in self.arguments)
        only = SequencedLaunch.model_construct(entry=self.entry, arguments=every, launch=self.launch)
        return self.launches or (only,)

    def of_step(self, index: int) -> "Kernel":
        """A launch of a sequence as a kernel of its own, with the arguments that it takes."""
        if not self.launches:
            return self
        step, known = self.launches[index], {a.name: a for a in self.arguments}
        arguments = tuple(known[name] for name in step.arguments)
        return self.model_copy(
            update={"entry": step.entry, "launch": step.launch, "arguments": arguments, "launches": ()}
        )

    def with_step(self, index: int, kernel: "Kernel") -> "Kernel":
        """The sequence with a launch, its arguments and the source as `kernel` has them.

        `kernel` is what `of_step` gave, rewritten; a launch keeps the names of its arguments.
        """
        if not self.launches:
            return kernel
        changed = {a.name: a for a in kernel.arguments}
        step = self.launches[index].model_copy(update={"entry": kernel.entry, "launch": kernel.launch})
        launches = (*self.launches[:index], step, *self.launches[index + 1 :])
        update = {
            "source": kernel.source,
            "arguments": tuple(changed.get(a.name, a) for a in self.arguments),
            "launches": launches,
            "entry": launches[0].entry,
            "launch": launches[0].launch,
        }
        return self.model_copy(update=update)

    @property
    def reached_twice(self) -> str:
        """A buffer that the kernel writes and gets by two ways; empty if no two of its pointers may meet."""
        ways = [a.name for a in self.arguments if a.is_buffer]
        for argument in self.declared:
            ways += [name for _, name in argument.targets()]
        return next((a.name for a in self.declared if a.is_mutated and ways.count(a.name) > 1), "")

    @property
    def local_arguments(self) -> tuple[Argument, ...]:
        """Arguments with the role `local`, in order."""
        return tuple(a for a in self.arguments if a.role is Role.LOCAL)

    @property
    def scratch(self) -> tuple[Argument, ...]:
        """Arguments with the role `scratch`, in order."""
        return tuple(a for a in self.arguments if a.role is Role.SCRATCH)

    @property
    def symbols(self) -> tuple[Argument, ...]:
        """Variables of the source that the job fills, in order."""
        return tuple(a for a in self.buffers if a.role is Role.SYMBOL)

    @property
    def text(self) -> str:
        """The source text. Only for kernels whose source is inline."""
        if self.source is None:
            raise ValueError("the source file has not been read yet")
        return self.source
