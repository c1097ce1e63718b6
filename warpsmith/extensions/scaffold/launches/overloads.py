"""Tells apart the kernels of one name that a launch may mean."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from warpsmith.extensions.scaffold.launches.call import LaunchCall
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.lexing.tokens import Token


class Overloads:
    """The kernels of the name of one kernel in texts."""

    def __init__(self, texts: Mapping[str, str], kernel: KernelDefinition, dialect: Dialect) -> None:
        self._kernel = kernel
        self._by_text = {
            name: [k for k in find_kernels(text, dialect) if k.name == kernel.name]
            for name, text in texts.items()
            if kernel.name in text
        }

    def means(self, call: LaunchCall, text: str) -> bool:
        """True if a launch in a text certainly means the kernel and not another one of its name."""
        near = self._by_text.get(text) or list(chain(*self._by_text.values()))
        likely = [k for k in near if len(k.arguments) == len(self._kernel.arguments)]
        others = [k for k in likely if _signature(k) != _signature(self._kernel)]
        if not others:
            return True
        if len(others) == len(likely) or not _fits(self._kernel, call):
            return False
        fitting = [k for k in others if _fits(k, call)]
        return not fitting or (_is_exact(self._kernel, call) and not any(_is_exact(k, call) for k in fitting))


def _signature(kernel: KernelDefinition) -> tuple[object, ...]:
    return (kernel.namespaces, len(kernel.template), tuple(a.type_text for a in kernel.arguments))


def _fits(kernel: KernelDefinition, call: LaunchCall) -> bool:
    if call.template_arguments and not (kernel.template or kernel.specialisation):
        return False
    free = {p.name for p in kernel.template}
    types = dict(enumerate(a.base for a in kernel.arguments))
    return all(types.get(n) == base or types.get(n) in free for n, base in _casts(call))


def _is_exact(kernel: KernelDefinition, call: LaunchCall) -> bool:
    casts = list(_casts(call))
    return bool(casts) and all(
        kernel.arguments[n].base == base for n, base in casts if n < len(kernel.arguments)
    )


def _casts(call: LaunchCall) -> Iterable[tuple[int, str]]:
    """Positions and pointee types of arguments that a pointer cast begins."""
    for n, part in (call.arguments or {}).items():
        base = _cast_of(part)
        if base:
            yield n, base


def _cast_of(part: Sequence[Token]) -> str:
    words = [t.text for t in part[:12]]
    if words[:2] in (["reinterpret_cast", "<"], ["static_cast", "<"]):
        closing = ">"
        inner = words[2:]
    elif words[:1] == ["("]:
        closing = ")"
        inner = words[1:]
    else:
        return ""
    inner = inner[: inner.index(closing)] if closing in inner else []
    if inner[-1:] != ["*"]:
        return ""
    return "".join(w for w in inner[:-1] if w not in ("const", "struct"))
