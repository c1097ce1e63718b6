"""What a later loop reads of a buffer that nobody writes is fetched before the block waits."""

import re

from warpsmith.domain.declined_rule import DeclineCode
from warpsmith.domain.space import Parameter
from warpsmith.rewrite.analysis.draft import Change, Declined, Draft, Rule
from warpsmith.rewrite.analysis.memory.later_reads import LaterLoop, later_loops
from warpsmith.rewrite.source.syntax_tree import Edit

PARAMETER = "WS_EARLY"
_FETCH = """\
__device__ __forceinline__ void ws_fetch(const void* p) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.L2 [%0];" : : "l"(p));
#endif
}
"""


class EarlyReads(Rule):
    """Asks for elements of a later loop before the first loop or barrier, so that they come while threads
    wait.

    Proven: the thread that asks is the one that reads, under the same conditions; what the address names has
    its value already, and does not change. A fetch changes no result.
    """

    name = "early_reads"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        if draft.is_opencl:
            return Declined(DeclineCode.BACK_END, "OpenCL's prefetch is for whole work-groups")
        found = later_loops(draft.facts)
        if isinstance(found, str):
            return Declined(DeclineCode.FORM, found)
        if PARAMETER in draft.names() or re.search(r"\b(?:WS_EARLY|ws_fetch)", draft.kernel.text):
            return Declined(DeclineCode.NAME_TAKEN, f"the name {PARAMETER} is taken")
        # A macro of one line: rules that follow take it for a name, and leave what it does alone.
        macros = "".join(f"#define {PARAMETER}_{n} {_text(loop)}\n" for n, loop in enumerate(found.loops))
        nothing = "".join(f"#define {PARAMETER}_{n} ((void)0)\n" for n in range(len(found.loops)))
        calls = "".join(f"{PARAMETER}_{n};\n" for n in range(len(found.loops)))
        roots = sorted({root for loop in found.loops for root in loop.roots})
        parameter = Parameter(
            name=PARAMETER,
            values=(0, 1),
            usual=1,  # a prefetch costs an instruction, and what it saves is a wait of all threads
            meaning="1: what later loops read is fetched before the first one",
        )
        return draft.changed(
            Change(
                self.name,
                ", ".join(roots),
                edits=[Edit(found.place, found.place, f"\n{calls}")],
                prologue=f"#if {PARAMETER} > 0\n{_FETCH}{macros}#else\n{nothing}#endif\n",
                parameters=(parameter,),
            )
        )


def _text(loop: LaterLoop) -> str:
    reads = " ".join(
        f"{f'if ({condition}) ' if condition else ''}ws_fetch({address});"
        for condition, address in loop.reads
    )
    return f"for ({loop.header}) {{ {reads} }}"
