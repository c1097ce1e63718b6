"""Checks of a binary: device variables and telling words that the user's kernel does not have."""

import re

from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.source.declarations.declared_variables import DeclaredVariables, declared_variables
from warpsmith.tuning.outputs.symbols import variable_of, without_unit

_COMPILERS = re.compile(r"\$\w+(\$\w+)*|__unnamed_\d+")


def undeclared_globals(kernel: ConfiguredKernel, compiled: Compiled, own: frozenset[str]) -> Rejected | None:
    """A candidate's device variables, other than constants, that the user's kernel does not have.

    Static variables of a header are the same ones in both, whatever hash of the source their symbols hold.
    Left out are variables of a toolkit's headers that the code never names.
    """
    if not compiled.globals:
        return None
    known = {without_unit(symbol) for symbol in own}
    declared = _declared(kernel)
    others = (g for g in compiled.globals if without_unit(g) not in known)
    found = [g for g in others if not _is_left_out(g, compiled, declared) and not _is_constant(kernel, g)]
    if not found:
        return None
    reason = f"has {found[0]}, by which launches can know of each other, and which your kernel has not"
    return Rejected(stage=Stage.COMPILE, reason=reason[:2000], facts=compiled.facts)


def undeclared_words(compiled: Compiled, own: frozenset[str]) -> Rejected | None:
    """A candidate's telling words that the user's kernel does not use."""
    found = [word for word in compiled.telling if word not in own]
    if not found:
        return None
    reason = f"depends on {found[0]}, so that it may be another kernel elsewhere, and your kernel does not"
    return Rejected(stage=Stage.COMPILE, reason=reason, facts=compiled.facts)


def persistent_variables(kernel: ConfiguredKernel, compiled: Compiled) -> list[str]:
    """Device variables that the user's kernel may keep something in between launches.

    Left out are constants, and variables that no text of the job declares: those of a toolkit's headers.
    """
    if not compiled.globals:
        return []
    names = _declared(kernel).names
    kept = (g for g in compiled.globals if variable_of(g) in names and not _is_constant(kernel, g))
    return [without_unit(g) for g in kept]


def _declared(kernel: ConfiguredKernel) -> DeclaredVariables:
    # The values of most parameters are numbers, which declare nothing.
    words = ((name, text) for name, text in sorted(kernel.defines.items()) if not _is_number(text))
    return declared_variables(
        (kernel.kernel.text, *kernel.kernel.files.values()),
        tuple(f"{name} {text}" for name, text in words),
        is_opencl=kernel.kernel.backend.language.is_opencl_c,
    )


def _is_number(text: str) -> bool:
    return text[:1].isdecimal()


def _is_left_out(symbol: str, compiled: Compiled, declared: DeclaredVariables) -> bool:
    """True of a variable that the code never names: a constant of the job's texts, or a toolkit's variable.

    That a constant of the same name may be declared otherwise, by words that are put together of parts, does
    not count here: what is never named is memory that only the end of another variable reaches.
    """
    name = variable_of(symbol)
    if symbol not in compiled.unnamed or not name.isascii():
        return False
    return name in declared.seen_as_constants or (declared.are_all_known and name not in declared.names)


def _is_constant(kernel: ConfiguredKernel, symbol: str) -> bool:
    """True if the variable of this (perhaps mangled) symbol is declared const, and nowhere else otherwise.

    A write through a cast is detected later by the variable's contents. The compiler's own symbols are texts
    of printf and assert.
    """
    texts = (kernel.kernel.text, *kernel.kernel.files.values())
    if _COMPILERS.fullmatch(symbol) and not any(symbol in text for text in texts):
        return True
    return variable_of(symbol) in _declared(kernel).constants
