"""One thing that is wrong, or may be, with a job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    field: str
    """Dotted path of the field (`kernel.arguments.0.dtype`); empty where the whole file is meant."""
    message: str
    """What is wrong and what would be right."""
    is_error: bool = True
    """False: a warning; the job may still be what its author wants."""
    line: int | None = None
    """Of the job file, from 1; None where it is not known."""
    inner_line: int | None = None
    """Of the text that the field holds (a source), from 1."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message
