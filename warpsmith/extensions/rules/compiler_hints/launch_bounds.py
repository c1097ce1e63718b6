"""Declares the number of threads per block to the compiler, and how many a multiprocessor should hold."""

import re
from dataclasses import replace

from tree_sitter import Node

from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange, limit
from warpsmith.extensions.rules.analysis.launch.block_limits import head_of
from warpsmith.source.tree.syntax_tree import Edit, split_arguments

PARAMETER = "WS_RESIDENT"
# Compilers before CUDA 12.4 have no such attribute; it is a hint, so they go without.
_REGISTERS = f"""\
#if {PARAMETER} > 0 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
#define WS_REGISTERS __maxnreg__(65536 / {PARAMETER})
#else
#define WS_REGISTERS
#endif
"""
_FITS = limit(
    f"{PARAMETER} <= device.max_threads_per_multiprocessor", "a multiprocessor never holds so many threads"
)


class LaunchBounds(Rule):
    """Adds `__launch_bounds__`, or to it how many blocks a multiprocessor should hold; in OpenCL adds
    `reqd_work_group_size`.

    Proven for the block: every extent is a number or a parameter. A limit of registers needs no proof, since
    what does not fit into registers is kept in memory.
    """

    name = "launch_bounds"
    keeps_accesses = True
    keeps_places = True
    needs_no_macro = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        extents = [e.text for e in draft.kernel.launch.block]
        known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
        named = all(e.isdecimal() or e in known for e in extents)
        kernel = draft.source.kernel
        declarator, kind = kernel.child_by_field_name("declarator"), kernel.child_by_field_name("type")
        if declarator is None or kind is None:
            return Declined(DeclineCode.FORM, "the definition's form is not understood")
        head = head_of(draft.source)
        if draft.is_opencl:
            if not named:
                words = "an extent of the block is an expression that the source cannot name"
                return Declined(DeclineCode.LAUNCH, words)
            if "reqd_work_group_size" in head:
                return Declined(DeclineCode.NO_GAIN, "the kernel has launch bounds already")
            sizes = ", ".join([*extents, "1", "1"][:3])
            edit = Edit(kind.start_byte, kind.start_byte, f"__attribute__((reqd_work_group_size({sizes}))) ")
            return draft.changed(RuleChange(self.name, " x ".join(extents), edits=[edit]))
        if PARAMETER in draft.names() or re.search(r"\bWS_REGISTERS\b", draft.kernel.text):
            return Declined(DeclineCode.NAME_TAKEN, f"the name {PARAMETER} is taken")
        return _of_cuda(draft, head, declarator.end_byte, kind, " * ".join(extents) if named else "")


def _of_cuda(draft: Draft, head: str, end: int, kind: Node, threads: str) -> Draft | Declined:
    """The kernel with the bounds that its head has, that its launch gives, or of its registers only.

    Args:
        head: text before and of the kernel's definition up to byte `end`.
        threads: of a block; empty if the source cannot name them.
    """
    prologue = ""
    if "__launch_bounds__" in head:
        found = re.search(r"__launch_bounds__(\s*)\(((?:[^()]|\([^()]*\))*)\)", head)
        if found is None or len(split_arguments(found.group(2))) != 1 or "__maxnreg__" in head:
            return Declined(DeclineCode.NO_GAIN, "the kernel has launch bounds already")
        last = end - len(head[found.end() - 1 :].encode())
        edit = Edit(last, last, f", {PARAMETER} / ({found.group(2).strip()})")
        detail = "the kernel's own, with a limit of registers"
    elif "__maxnreg__" in head:
        return Declined(DeclineCode.NO_GAIN, "the kernel has a limit of registers already")
    elif threads:
        bounds = f" __launch_bounds__({threads}, {PARAMETER} / ({threads}))"
        edit, detail = Edit(kind.end_byte, kind.end_byte, bounds), threads
    else:
        edit = Edit(kind.end_byte, kind.end_byte, " WS_REGISTERS")
        prologue, detail = _REGISTERS, "a limit of registers"
    parameter = Parameter(
        name=PARAMETER,
        values=(0, 1024, 2048),
        usual=0,  # a limit that is not measured spills
        meaning="threads of a multiprocessor for which the compiler spares registers; 0: as it sees fit",
    )
    made = draft.changed(
        RuleChange(
            LaunchBounds.name,
            detail,
            edits=[edit],
            prologue=prologue,
            parameters=(parameter,),
            constraints=(_FITS,),
        )
    )
    # The head is that of every body of the kernel.
    variants = tuple(replace(v, known=v.known | {PARAMETER}) for v in made.variants)
    return replace(made, variants=variants)
