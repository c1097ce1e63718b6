"""Writes arguments, buffers and symbols of job files: fields as a line with its comment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_flow, yaml_number, yaml_word

Fields = dict[str, Any]
"""Fields of an argument in the job form; numbers and expressions may be texts."""
_MEMBER = "\n         "
"""Beginning of the line that each member of a struct has."""
_WORDS = ("name", "to", "type")
"""Fields whose texts are never numbers."""
ZEROS: Fields = {"distribution": "constant", "low": 0}
"""Draw of elements that may be indices or addresses."""


@dataclass(frozen=True)
class ArgumentLine:
    """An argument, buffer or symbol of a job, with a comment for whoever completes the file."""

    fields: Fields
    """Empty for a symbol that no job can declare; its line is the comment alone."""
    comment: str = ""
    is_written: bool = False
    buffers: tuple[Fields, ...] = ()
    """Buffers that the argument leads to, besides the arguments."""
    is_told: bool = False
    """True if another tool's facts replaced guesses; YAML's own quotes are used then."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Fields that are guesses, in words; they stand before the comment."""

    def item(self) -> str:
        """The line in a list of a job file."""
        if not self.fields:
            return f"  # {self.said}"
        text = yaml_flow(self.fields) if self.is_told else flow_text(self.fields)
        if members := self.fields.get("fields"):
            begin = flow_text({**self.fields, "fields": []}).removesuffix("]}")
            text = f"{begin}{','.join(_MEMBER + flow_text(m) for m in members)}]}}"
        return f"    - {text}" + (f"  # {self.said}" if self.said else "")

    @property
    def said(self) -> str:
        """The comment, with what is doubtful."""
        text = "; ".join(filter(None, (*self.doubts.values(), self.comment)))
        return f"{TODO}: {text}" if self.doubts else text


def flow_text(value: Any) -> str:
    """A field's value in one line of YAML; texts are quoted where YAML needs it, numbers in texts are not."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {flow_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow_text, value))}]"
    return yaml_word(value) if isinstance(yaml_number(str(value)), str) else str(value)


def with_numbers(value: Any) -> Any:
    """Fields in which texts that are numbers are numbers."""
    if isinstance(value, dict):
        return {k: v if k in _WORDS else with_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [with_numbers(v) for v in value]
    return yaml_number(value) if isinstance(value, str) else value
