"""Keywords that OpenCL C and CUDA have for the same concepts, and statements with their address spaces."""

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import AXES
from warpsmith.rewrite.reader.declarations.type_words import element_type
from warpsmith.rewrite.source.syntax_tree import Source

_SPACES = re.compile(
    r"(?:\b(?:__global|global|__local|local|__constant|constant|__private|private)\s+)+$|\b(?:__shared__)\s+$"
)


@dataclass(frozen=True)
class Words:
    """One dialect's names for thread and block indices and shared memory."""

    opencl: bool

    def thread(self, axis: str) -> str:
        """A thread's index in its block."""
        return f"(int)get_local_id({AXES.index(axis)})" if self.opencl else f"(int)threadIdx.{axis}"

    def block(self, axis: str) -> str:
        """A block's index in the grid."""
        return f"(int)get_group_id({AXES.index(axis)})" if self.opencl else f"(int)blockIdx.{axis}"

    def threads(self, axis: str) -> str:
        """Number of threads of a block."""
        return f"(int)get_local_size({AXES.index(axis)})" if self.opencl else f"(int)blockDim.{axis}"

    @property
    def shared(self) -> str:
        """Qualifier of an array in shared memory."""
        return "__local" if self.opencl else "__shared__"

    @property
    def fresh(self) -> str:
        """Qualifier of a local that is computed anew on both sides of a barrier.

        PoCL may assume that a comparison carried over a barrier has the same result in all threads.
        """
        return "volatile " if self.opencl else "const "

    def zero(self, kind: str) -> str:
        """The value 0 of a type; of a struct, the one whose fields are all 0."""
        base = kind.replace("const", "").replace("volatile", "").strip()
        if "*" in base or element_type(base, {})[0] is not None:
            return f"({kind})0"
        return f"({kind}){{0}}" if self.opencl else f"{kind}{{}}"

    @property
    def barrier(self) -> str:
        """Barrier for the threads of a block; afterwards each sees what the others wrote."""
        return "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);" if self.opencl else "__syncthreads();"


def start_of(source: Source, statement: Node) -> int:
    """Start of a statement, its address-space words included."""
    found = _SPACES.search(source.between(0, statement.start_byte)[-80:])
    return statement.start_byte - (len(found.group().encode()) if found else 0)


def text_of(source: Source, statement: Node) -> str:
    """A statement with its address-space words."""
    return source.between(start_of(source, statement), statement.end_byte)
