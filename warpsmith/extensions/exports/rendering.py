"""Templates of exports."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

BYTES_A_LINE = 20


def rendered(name: str, values: Mapping[str, object]) -> str:
    """Text of a template with its values; a name without a value is an error."""
    text = (files("warpsmith.extensions.exports") / "templates" / name).read_text(encoding="utf-8")
    return _environment().from_string(text).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    made.globals["bytes"] = byte_text
    return made


def byte_text(data: bytes) -> str:
    """Bytes as numbers of a C array: compilers limit the length of a string."""
    numbers = [str(b) for b in data]
    lines = [numbers[i : i + BYTES_A_LINE] for i in range(0, len(numbers), BYTES_A_LINE)]
    return ",\n    ".join(",".join(line) for line in lines)
