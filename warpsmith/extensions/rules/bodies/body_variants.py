"""Composition of a kernel with its variant bodies."""

from dataclasses import replace

from warpsmith.domain.expressions import Expression
from warpsmith.domain.templates.space import Constraint
from warpsmith.extensions.rules.analysis.draft import Draft, limit
from warpsmith.source.tree.syntax_tree import Edit


def compose(draft: Draft) -> Draft:
    """The draft with every variant in its source, its launch and its constraints."""
    if not draft.variants:
        return draft
    body = draft.source.body
    lines = []
    for n, variant in enumerate(draft.variants):
        lines.append(f"\n#{'elif' if n else 'if'} {variant.condition.text}\n{variant.body}")
    head = "".join(lines) + "\n#else\n"
    start, end = body.start_byte + 1, body.end_byte - 1
    made = draft.rewritten([Edit(start, start, head), Edit(end, end, "\n#endif\n")])
    launch = draft.kernel.launch
    grid = list(launch.grid)
    for variant in reversed(draft.variants):
        for n, extent in enumerate(variant.grid):
            if extent != grid[n]:
                grid[n] = Expression(f"({extent.text}) if {variant.condition.text} else ({grid[n].text})")
    kernel = made.kernel.model_copy(update={"launch": launch.model_copy(update={"grid": tuple(grid)})})
    return replace(made, kernel=kernel, variants=(), constraints=(*draft.constraints, *_exclusions(draft)))


def _exclusions(draft: Draft) -> list[Constraint]:
    """Constraints that keep parameters of the original body at their defaults if another body is compiled."""
    found = []
    for variant in draft.variants:
        known = variant.known.union(*(extent.names for extent in variant.grid))
        for p in (p for p in draft.parameters if p.name not in known):
            kept = f"{p.name} == {p.baseline_value} or not ({variant.condition.text})"
            found.append(limit(kept, f"{p.name} has no part in the body that is compiled there"))
    return found
