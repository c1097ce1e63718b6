"""Names that rules add for one launch of a sequence, told apart from those of the other launches."""

import re
from collections.abc import Callable
from dataclasses import replace

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.extensions.rules.analysis.draft import Draft

_ADDED = re.compile(r"\b(?:WS|ws)_\w*")


def numbered(draft: Draft, before: str, launch: int) -> Draft:
    """The draft with `_<launch>` behind every name that rules added to the text `before`.

    Each launch has parameters of its own: `WS_BLOCK_0` and `WS_BLOCK_1`.
    """
    own = set(_ADDED.findall(before))
    added = {p.name for p in draft.parameters} - {p.name for p in draft.job.parameters}
    added |= set(_ADDED.findall(draft.kernel.text))
    names = added - own

    def text(given: str) -> str:
        return re.sub(r"\b\w+\b", lambda m: f"{m[0]}_{launch}" if m[0] in names else m[0], given)

    def expression(given: Expression) -> Expression:
        return Expression(text(given.text)) if given.names & names else given

    return replace(
        draft,
        kernel=_renamed(draft.kernel, text, expression),
        parameters=tuple(p.model_copy(update={"name": text(p.name)}) for p in draft.parameters),
        constraints=tuple(
            c.model_copy(update={"expression": expression(c.expression)}) for c in draft.constraints
        ),
        applied=tuple(
            a.model_copy(
                update={
                    "parameters": tuple(text(name) for name in a.parameters),
                    "detail": text(f"launch {launch}: {a.detail}"),
                }
            )
            for a in draft.applied
        ),
    )


def _renamed(
    kernel: Kernel, text: Callable[[str], str], expression: Callable[[Expression], Expression]
) -> Kernel:
    launch = kernel.launch
    fields = {
        "grid": tuple(expression(e) for e in launch.grid),
        "block": tuple(expression(e) for e in launch.block),
        "cluster": tuple(expression(e) for e in launch.cluster),
        "shared_bytes": expression(launch.shared_bytes),
    }
    arguments = tuple(
        a.model_copy(update={"shape": tuple(expression(e) for e in a.shape)}) for a in kernel.arguments
    )
    return kernel.model_copy(
        update={
            "source": text(kernel.text),
            "entry": text(kernel.entry),
            "launch": launch.model_copy(update=fields),
            "arguments": arguments,
        }
    )
