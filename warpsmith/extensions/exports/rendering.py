"""Templates of exports."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from warpsmith.extensions.exports.c_header import byte_text


def environment() -> Environment:
    """Environment that renders templates; a name without a value is an error."""
    made = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    made.globals["bytes"] = byte_text
    return made


def template(name: str) -> str:
    """The text of a template."""
    return (files("warpsmith.extensions.exports") / "templates" / name).read_text(encoding="utf-8")
