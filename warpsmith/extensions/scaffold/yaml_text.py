"""Words as YAML."""

import json
import re
from collections.abc import Mapping
from typing import Any

from warpsmith.job_files.yaml_data import yaml_of

TODO = "TODO"
"""Mark for something that a person must check; as a value, something that a person must supply."""


def yaml_word(text: str) -> str:
    """A word as YAML; quoted if YAML would read it as another type."""
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", text) is not None and yaml_of(text).startswith(text)
    return text if plain else json.dumps(text)


def yaml_flow(fields: Mapping[str, Any]) -> str:
    """A mapping as YAML in one line, with braces."""
    return yaml_of(dict(fields), default_flow_style=True, width=10**9).strip()


def yaml_extent(text: str) -> str:
    """A number, or an expression as a word of YAML."""
    return text if text.isdecimal() else yaml_word(text)


def yaml_number(text: str) -> int | float | str:
    """The number that a text is; other texts unchanged."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+", text):
        return float(text)
    return text
