"""An argument as a job file has it: its fields and a comment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ArgumentLine:
    """One argument of the job."""

    fields: str
    comment: str = ""
    is_written: bool = False
    buffers: tuple[str, ...] = ()
    """Buffers that the argument leads to, besides the arguments."""
