"""Proves that addresses in shared memory do not depend on the block's index."""

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.memory.shared_arrays import is_dynamic
from warpsmith.extensions.rules.analysis.threads.block_places import mentions

_OF_THE_GRID = ("bid", "gdim")


def why_places_not(facts: Facts) -> str | None:
    """The reason why a block of another size may reach behind its local arguments; None if it does not.

    A place that follows from the block's index (`sums[get_global_id(0)]`) lies inside the memory only if the
    grid has one block along that axis. A smaller block makes more of them, whose places lie behind.
    """
    for function in facts.source.reachable:
        for access in facts.accesses(function):
            root = access.root
            if root is None or access.index is None or not root.is_shared:
                continue
            if not (root.is_parameter or is_dynamic(facts, root)):
                continue
            if any(mentions(facts, access.index, kind) for kind in _OF_THE_GRID):
                text = facts.source.of(access.node)[:60]
                return f"`{text}` is a place in local memory that follows from which block it is"
    return None
