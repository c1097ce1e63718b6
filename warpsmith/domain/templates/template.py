"""Templates: kernels whose tunables are named parameters."""

import hashlib
import re
from collections.abc import Iterable, Mapping

from pydantic import Field

from warpsmith.domain.base import Frozen
from warpsmith.domain.expressions import Value
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.specialisation import Specialisation
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.outcome import Stage
from warpsmith.domain.templates.space import Configuration, ParameterValue, Space, is_shape


class AppliedRule(Frozen):
    """A rewrite that was applied, as evidence in the result."""

    rule: str
    detail: str = ""
    parameters: tuple[str, ...] = ()


class RuleFault(Frozen):
    """A rewrite rule of ours whose template failed with its default configuration."""

    rule: str
    stage: Stage
    """Stage at which it failed."""
    reason: str = Field(max_length=2000)
    """Message of the compiler or of the check."""

    @property
    def declined(self) -> DeclinedRule:
        """The rule as one that later templates decline."""
        what = "did not compile" if self.stage is Stage.COMPILE else f"failed ({self.stage.value})"
        words = f"our rewrite {what}: {(self.reason.splitlines() or [''])[0]}"
        return DeclinedRule(rule=self.rule, code=DeclineCode.FAILED, reason=words)

    @property
    def words(self) -> str:
        """Description of the fault, in a line."""
        return str(self.declined)


class Template(Frozen):
    """A kernel and the space of its macros.

    `kernel.source` uses every parameter as a macro; `kernel.entry`, `kernel.launch` and `kernel.launches`
    may use them too. With `space.defaults` it behaves as the user's kernel does.
    """

    kernel: Kernel
    space: Space = Space()
    applied: tuple[AppliedRule, ...] = ()
    warm_starts: tuple[Configuration, ...] = Field(default=(), max_length=64)
    """Configurations to try first."""

    def configured(self, configuration: Mapping[str, ParameterValue]) -> "ConfiguredKernel":
        """This template with every parameter set."""
        own = (p.name for p in self.space.parameters if not is_shape(p.name))
        defines = {name: macro_text(configuration[name]) for name in own}
        launches = tuple(
            step.model_copy(update={"entry": _with_values(step.entry, defines)})
            for step in self.kernel.launches
        )
        entry = _with_values(self.kernel.entry, defines)
        return ConfiguredKernel(
            kernel=self.kernel.model_copy(update={"entry": entry, "launches": launches}),
            defines=defines,
            configuration=dict(configuration),
        )


def _with_values(entry: str, defines: Mapping[str, str]) -> str:
    for name, text in defines.items():
        entry = re.sub(rf"\b{re.escape(name)}\b", text, entry)
    return entry


LARGE_GRID = 1 << 16
"""Work-items along an axis from which PoCL takes another work-group function."""


class ExpectedLaunch(Frozen):
    """The launch that a binary is finished for, if its driver would else finish it at the first launch."""

    block: tuple[int, int, int]
    is_small: bool
    """True if every axis has fewer work-items than `LARGE_GRID`."""


_NO_PART_OF_NAMES = ("configuration", "expected_launch", "tells_words")
"""Fields of a configured kernel that change nothing of what runs."""


class ConfiguredKernel(Frozen):
    """A template with a configuration: ready to compile and launch."""

    kernel: Kernel
    defines: dict[str, str] = {}
    configuration: Configuration = {}
    specialisation: Specialisation | None = None
    """Triton: the variant to compile. None: those of the workloads that it is launched with."""
    expected_launch: ExpectedLaunch | None = None
    """Launch to finish the binary for, which makes the first launch faster; None if no driver asks for it."""
    tells_words: bool = False
    """CUDA and HIP: True to look for environment probes, which takes some compilations more. The binary is
    the same. OpenCL's are looked for always."""

    @property
    def source(self) -> str:
        """The source to compile: the macros, then the template's source with its own line numbers."""
        if not self.kernel.backend.language.is_c_text:
            return self.kernel.text
        prologue = "".join(f"#define {name} {text}\n" for name, text in self.defines.items())
        numbered = "#line 1\n" if prologue else ""
        return prologue + numbered + without_definitions(self.kernel.text, self.defines)

    @property
    def key(self) -> str:
        """Short stable name of the compiled and launched kernel: 16 hex digits of SHA-256."""
        # A database may keep the names of a configuration in another order; its values are in `defines`.
        left_out: dict[str, bool | set[str]] = dict.fromkeys(_NO_PART_OF_NAMES, True)
        # Names of kernels that have none of these are as they were before there were any.
        left_out["kernel"] = {f for f in ("launches", "constexprs") if not getattr(self.kernel, f)}
        if self.specialisation is None:
            left_out["specialisation"] = True
        text = self.model_dump_json(exclude=left_out)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def scope(self, dimensions: Mapping[str, Value], device: Mapping[str, Value]) -> dict[str, Value]:
        """Names for launch and constraint expressions of one workload on one device."""
        return {**device, **dimensions, **self.configuration}


def without_definitions(text: str, names: Iterable[str]) -> str:
    """`text` without its own `#define`s of these macros, which would override those of a configuration."""
    listed = "|".join(re.escape(n) for n in names)
    if not listed:
        return text
    pattern = rf"^[ \t]*#[ \t]*define[ \t]+(?:{listed})\b(?!\()(?:[^\n]*\\\n)*[^\n]*"
    return re.sub(pattern, "", text, flags=re.MULTILINE)


def macro_text(value: ParameterValue) -> str:
    """The text of a macro set to `value`."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value)
