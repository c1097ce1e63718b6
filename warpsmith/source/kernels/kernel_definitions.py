"""Kernel definitions of a source: names, templates, arguments."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from warpsmith.domain.device import Backend
from warpsmith.source.declarations.argument_lists import (
    KernelArgument,
    TemplateParameter,
    read_arguments,
    split_template,
)
from warpsmith.source.declarations.type_names import type_aliases
from warpsmith.source.kernels.kernel_headers import is_extern_c, launch_bounds, parameter_list
from warpsmith.source.lexing.scopes import EXTERN_C, Scope, namespaces, scopes
from warpsmith.source.lexing.tokens import Tokens, tokenise
from warpsmith.source.macros.macro_words import defined_words, marker_words, stands_for

_LONGEST_HEADER = 20_000


class Dialect(StrEnum):
    """Language of a source."""

    CUDA = "cuda"
    HIP = "hip"
    OPENCL = "opencl"

    @staticmethod
    def from_backend(backend: Backend) -> "Dialect":
        """The language of a back end's kernels."""
        return Dialect(backend.value)

    @property
    def backend(self) -> Backend:
        """The back end that compiles this language."""
        return Backend(self.value)

    @property
    def markers(self) -> frozenset[str]:
        """Words that make a function a kernel."""
        return frozenset(("__kernel", "kernel") if self is Dialect.OPENCL else ("__global__",))


@dataclass(frozen=True)
class KernelDefinition:
    """A kernel of a source, with its body."""

    name: str
    namespaces: tuple[str, ...]
    """Namespaces, outermost first; anonymous ones are left out."""
    template: tuple[TemplateParameter, ...]
    specialisation: str
    """`int` for `template <> ... kernel<int>(...)`; empty for others."""
    arguments: tuple[KernelArgument, ...]
    line: int
    """Line of the name, from 1."""
    launch_bounds: str
    """Content of `__launch_bounds__` (OpenCL: `reqd_work_group_size`); empty without one."""
    is_extern_c: bool
    body: str
    """Text from `{` to `}`."""
    is_taken: bool = True
    """False if a conditional leaves it out, with the macros of the text and those that are given."""

    @property
    def qualified_name(self) -> str:
        """`outer::inner::kernel`."""
        return "::".join((*self.namespaces, self.name))


def find_kernels(
    text: str, dialect: Dialect, defines: Mapping[str, str] | None = None, headers: Sequence[str] = ()
) -> tuple[KernelDefinition, ...]:
    """Every kernel definition of a source, in order; those in every preprocessor branch.

    Object-like macros may stand for the word that introduces a kernel, and for its name. Function-like ones
    are not expanded, so kernels that they write are not found.

    Args:
        defines: macros given to the compiler; names of types may depend on them.
        headers: texts of headers whose macros introduce or name kernels too.
    """
    return tuple(_KernelReader(tokenise(text, defines), dialect, headers).kernels())


class _KernelReader:
    def __init__(self, tokens: Tokens, dialect: Dialect, headers: Sequence[str]) -> None:
        self._tokens = tokens
        self._items = tokens.items
        self._markers = marker_words(dialect.markers, tokens, headers)
        self._words = defined_words(headers) | tokens.macros
        self._aliases = _type_macros(tokens) | dict(type_aliases(self._items))
        # Branches that are taken come before what all branches agree on.
        self._aliases |= dict(type_aliases(tuple(self._items[n] for n in tokens.forward(0))))

    def kernels(self) -> Iterator[KernelDefinition]:
        for at, scope in scopes(self._tokens):
            if self._items[at].text in self._markers:
                found = self._definition(at, scope)
                if found is not None:
                    yield found

    def _definition(self, marker: int, scope: Scope) -> KernelDefinition | None:
        after = self._header_after(marker)
        if after is None:
            return None
        whole = [self._items[n] for n in (*self._before(marker), marker, *after)]
        template, header = split_template(whole)
        call = parameter_list(header)
        if call is None:
            return None
        name_at, special, opening, closing = call
        name = header[name_at]
        body_at = after[-1] + 1
        own = {p.name for p in template}
        aliases = {n: kind for n, kind in self._aliases.items() if n not in own}
        return KernelDefinition(
            name=stands_for(name.text, self._words),
            namespaces=namespaces(scope),
            template=template,
            specialisation=special,
            arguments=read_arguments(header[opening + 1 : closing], self._tokens.macros, aliases),
            line=self._tokens.text.count("\n", 0, name.start) + 1,
            launch_bounds=launch_bounds(header),
            is_extern_c=EXTERN_C in scope or is_extern_c(header),
            body=self._body(next(self._tokens.forward(body_at))),
            is_taken=self._tokens.are_taken(marker),
        )

    def _header_after(self, marker: int) -> list[int] | None:
        """Tokens from the marker to the body; None for declarations."""
        found: list[int] = []
        depth = 0
        for n in self._tokens.forward(marker + 1):
            text = self._items[n].text
            depth += (text in ("(", "[")) - (text in (")", "]"))
            if depth <= 0 and text in ("{", ";", "}"):
                return found if text == "{" and found else None
            if text in self._markers or len(found) > _LONGEST_HEADER:
                return None
            found.append(n)
        return None

    def _before(self, marker: int) -> list[int]:
        """Tokens of the same declaration before the marker."""
        before = takewhile(
            lambda n: self._items[n].text not in (";", "{", "}"), self._tokens.backward(marker)
        )
        return list(before)[::-1]

    def _body(self, opening: int) -> str:
        depth = 0
        for n in self._tokens.forward(opening):
            text = self._items[n].text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return self._tokens.text[self._items[opening].start : self._items[n].start + 1]
        return self._tokens.text[self._items[opening].start :]


def _type_macros(tokens: Tokens) -> dict[str, str]:
    """Macros that are, or may be, the name of a type, whatever is defined elsewhere."""
    plain = r"(?:(?:unsigned|signed|long|short|const) )*[A-Za-z_][\w:]*"
    macros = {name: tokens.macros[name] for name in tokens.certain}
    return {name: value for name, value in macros.items() if re.fullmatch(plain, value)}
