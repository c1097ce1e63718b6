"""Words as YAML."""

import json
import re

import yaml

TODO = "TODO"
"""Mark for something that a person must check; as a value, something that a person must supply."""


def yaml_word(text: str) -> str:
    """A word as YAML; quoted if YAML would read it as another type."""
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", text) is not None and yaml.safe_load(text) == text
    return text if plain else json.dumps(text)
