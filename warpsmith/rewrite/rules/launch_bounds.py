"""Declares the number of threads per block to the compiler."""

from warpsmith.rewrite.analysis.draft import Change, Declined, Draft
from warpsmith.rewrite.source.syntax_tree import Edit


class LaunchBounds:
    """Adds `__launch_bounds__` or `reqd_work_group_size`. Proven: every extent is a number or a parameter."""

    name = "launch_bounds"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
        extents = [e.text for e in draft.kernel.launch.block]
        if not all(e.isdecimal() or e in known for e in extents):
            return Declined("an extent of the block is an expression that the source cannot name")
        kernel = draft.source.kernel
        declarator = kernel.child_by_field_name("declarator")
        kind = kernel.child_by_field_name("type")
        if declarator is None or kind is None:
            return Declined("the definition's form is not understood")
        line = draft.source.between(draft.source.kernel.start_byte, declarator.end_byte)
        before = draft.source.text[: kernel.start_byte][-300:]
        if "__launch_bounds__" in line or "reqd_work_group_size" in line + before:
            return Declined("the kernel has launch bounds already")
        if draft.is_opencl:
            sizes = ", ".join([*extents, "1", "1"][:3])
            edit = Edit(kind.start_byte, kind.start_byte, f"__attribute__((reqd_work_group_size({sizes}))) ")
        else:
            edit = Edit(kind.end_byte, kind.end_byte, f" __launch_bounds__({' * '.join(extents)})")
        return draft.changed(Change(self.name, " x ".join(extents), edits=[edit]))
