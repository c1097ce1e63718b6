"""Languages in which kernels are written: what a source looks like, and which devices and tools serve it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from warpsmith.registry import Kind, load_all

OWN_LANGUAGES = "warpsmith.domain.own_languages"
"""Module with the languages that no extension provides, as `LANGUAGES`."""

Hook = Callable[..., Any]


def imported(module: str, name: str) -> Hook:
    """A function that is imported when it is called, so that a table of languages costs no import."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call


def _no_text(*_: object) -> str:
    return ""


def _first(value: Any, *_: object) -> Any:
    return value


@dataclass(frozen=True)
class Language:
    """A language of kernels with everything that other parts ask about it.

    A device's own back end has the name of the language that its driver takes.
    """

    name: str
    """Value of `kernel.backend` in a job."""
    devices: tuple[str, ...]
    """Back ends of the devices that run it, those of its own first."""
    module: str = ""
    """Module with the functions of `backends.base.BackendModule`; empty if nothing is compiled."""
    endings: tuple[str, ...] = (".cu",)
    """Endings of source files with the dot, the usual one first."""
    is_recorded: bool = False
    """True for recorded timings: nothing is compiled, run or checked."""

    is_c_text: bool = True
    """True for dialects of C and C++, which macros configure and the rewriting rules read."""
    has_cuda_words: bool = False
    """True for C++ with `__global__`, `threadIdx` and `__shared__`."""
    is_opencl_c: bool = False
    """True for C with address spaces, `get_local_id` and `barrier`."""
    kernel_word: str = ""
    """Qualifier of a kernel's definition."""
    kernel_head: str = ""
    """Words before the name of a kernel that is called by that name."""
    global_word: str = ""
    """Qualifier of a pointer to device memory."""
    global_index: str = ""
    """Index of a thread along x in the whole launch."""
    axis: str = ""
    """Pattern of a thread that asks for its place along an axis other than x; group 1 is the axis."""
    grid_axis: str = ""
    """Pattern as `axis`, of a thread that asks which block it is in."""
    comment: str = "//"
    lexer: str = "cuda"
    """Name of Pygments' lexer for sources."""
    pads_vectors: bool = False
    """True if a vector of 3 takes the room of 4, and is aligned to all of it."""
    offset_of: str = ""
    """Constant expression for the byte of a member `{1}` in a type `{0}`."""
    assertion: str = 'static_assert({condition}, "{words}");'
    """Declaration that fails to compile unless `{condition}` holds; `{identifier}` is `{words}` as a name."""
    widest_warp: int = 32
    """Most threads that a warp has on any device."""

    options: tuple[str, ...] = ()
    """Compile options that a job may name, as regular expressions."""
    launch_options: tuple[str, ...] = ()
    """Parameters with these names go to the launch rather than to the source."""
    specialises: bool = False
    """True if the compiler reads constexprs and values of arguments, so that launches need variants."""
    runs_source: bool = False
    """True if compiling a source runs it; a compile child then serves one kernel only."""

    bindings: tuple[str, ...] = ()
    """Modules that a child's fork server imports."""
    libraries: tuple[str, ...] = ()
    """Top-level modules of which one is needed to run kernels; the last is that of its own devices."""
    remedy: str = ""
    """Advice where no device of its own is found; `{advice}` installs the last of `libraries`."""
    environment_names: tuple[str, ...] = ()
    """Variables that a child inherits: locations of drivers and toolkits."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that a child is given."""
    probe_rank: int | None = None
    """Place among the back ends that are asked for devices, best first; None if it has none of its own."""
    has_nvidia_tools: bool = False
    """True if its devices have NVML, Nsight Compute, the sanitizer and CuPy."""
    compiles_anywhere: bool = False
    """True if a machine without the device can compile for it."""
    finishes_at_launch: bool = False
    """True if a driver on the host's cores compiles for a block when it is first launched."""
    lists_root: bool = False
    """True if the driver lists the root folder of the file system."""

    complete: Hook = _first
    """(fields of a kernel as given) -> the fields with what the language implies."""
    complete_in_job: Hook = _first
    """(kernel as given, parameters as given) -> the kernel with what the language implies."""
    problem: Hook = _no_text
    """(kernel) -> what the language forbids in it, with its field; empty if all is well."""
    signature_findings: Hook | None = None
    """(job) -> findings about a source that is no C."""
    compile_reply: Hook = _first
    """(compilation, configured kernel) -> the compilation with facts read from its binary, or a rejection."""
    toolkit_folders: Hook = tuple
    """() -> folders of a toolkit that children may read."""
    compiler_version: Hook = _no_text
    """() -> versions of the compilers of this machine; empty for one that is a part of a device's driver."""
    lacking: Hook = _no_text
    """() -> what this machine lacks to run it on devices that it has; empty if nothing."""

    @property
    def ending(self) -> str:
        """The usual ending of a source file, with the dot."""
        return self.endings[0]

    @property
    def runs_on_nvidia(self) -> bool:
        """True if a device with NVIDIA's tools may run it."""
        return any(languages()[name].has_nvidia_tools for name in self.devices)


@cache
def languages() -> Mapping[str, Language]:
    """All languages by name: those of ring 1, then those of extensions.

    Raises:
        ValueError: two have one name.
    """
    own: tuple[Language, ...] = import_module(OWN_LANGUAGES).LANGUAGES
    every = (*own, *load_all(Kind.LANGUAGE))
    found = {language.name: language for language in every}
    if len(found) < len(every):
        raise ValueError(f"two languages have one name: {[language.name for language in every]}")
    return MappingProxyType(found)


def language_named(name: object) -> Language | None:
    """The language of a name that was not checked yet; None without one."""
    return languages().get(name) if isinstance(name, str) else None
