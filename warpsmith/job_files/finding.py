"""A single error or warning about a job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Result of a check: one error or warning."""

    field: str
    """Dotted path of the field (`kernel.arguments.0.dtype`); empty if the finding is about the whole file."""
    message: str
    """Problem, and how to correct it."""
    is_error: bool = True
    """False: a warning; the job may still be as its author intends."""
    line: int | None = None
    """Line of the job file, from 1; None if unknown."""
    inner_line: int | None = None
    """Line of the text that the field holds (a source), from 1."""

    def as_json(self) -> dict[str, str | int | None]:
        """The finding for programs."""
        severity = "error" if self.is_error else "warning"
        return {"severity": severity, "line": self.line, "field": self.field, "message": self.message}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message
