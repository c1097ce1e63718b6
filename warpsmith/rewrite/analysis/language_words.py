"""Words that OpenCL C and CUDA have for the same thing, and statements with their address spaces."""

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import AXES
from warpsmith.rewrite.source.syntax_tree import Source

_SPACES = re.compile(
    r"(?:\b(?:__global|global|__local|local|__constant|constant|__private|private)\s+)+$|\b(?:__shared__)\s+$"
)


@dataclass(frozen=True)
class Words:
    """How one dialect names threads, blocks and what they share."""

    opencl: bool

    def thread(self, axis: str) -> str:
        """A thread's place in its block."""
        return f"(int)get_local_id({AXES.index(axis)})" if self.opencl else f"(int)threadIdx.{axis}"

    def block(self, axis: str) -> str:
        """A block's place in the grid."""
        return f"(int)get_group_id({AXES.index(axis)})" if self.opencl else f"(int)blockIdx.{axis}"

    def threads(self, axis: str) -> str:
        """Threads of a block."""
        return f"(int)get_local_size({AXES.index(axis)})" if self.opencl else f"(int)blockDim.{axis}"

    @property
    def shared(self) -> str:
        """What stands before an array that the threads of a block share."""
        return "__local" if self.opencl else "__shared__"

    @property
    def fresh(self) -> str:
        """Stands before a local that is worked out anew on both sides of a barrier.

        PoCL may take the outcome of a comparison that it carries over a barrier for the same in all threads.
        """
        return "volatile " if self.opencl else "const "

    @property
    def barrier(self) -> str:
        """Every thread of the block waits, and sees what the others wrote."""
        return "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);" if self.opencl else "__syncthreads();"


def start_of(source: Source, statement: Node) -> int:
    """Where a statement starts, its address-space words included."""
    found = _SPACES.search(source.between(0, statement.start_byte)[-80:])
    return statement.start_byte - (len(found.group().encode()) if found else 0)


def text_of(source: Source, statement: Node) -> str:
    """A statement with its address-space words."""
    return source.between(start_of(source, statement), statement.end_byte)
