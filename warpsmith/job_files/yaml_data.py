"""YAML with the plain values of version 1.2; those that version 1.1 reads as other values are refused."""

import json
import re
from typing import Any

import yaml

from warpsmith.domain.plain_data import MAX_DEPTH, MAX_VALUES

_TAG = "tag:yaml.org,2002:"
_EVENTS = 4
"""More than the events of a value: its key, its beginning, its end."""
_IN_DOUBT = "!in-doubt"
_IN_DOUBT_TEXT = r"""yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF
    |[-+]?0(?!0*\Z)[0-9_]+ |[-+]?0b[01_]+ |[-+]0x[0-9a-fA-F_]+ |0x[0-9a-fA-F_]*_[0-9a-fA-F_]*
    |[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    |[-+]?(?=[0-9.]*_)[0-9][0-9_]*(?:\.[0-9_]*(?:[eE][-+][0-9]+)?)?"""
"""Texts that version 1.1 reads as another number or truth value than version 1.2 does."""
_PLAIN = (
    (_IN_DOUBT, _IN_DOUBT_TEXT, "yYnNoO-+.0123456789"),
    (f"{_TAG}null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (f"{_TAG}bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    (f"{_TAG}int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        f"{_TAG}float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    (f"{_TAG}merge", "<<", "<"),
)


def reader_from(base: Any) -> Any:
    """A loader with these meanings of plain values; `base` is a safe one, in C or in Python."""

    class YamlReader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            if len(node.value) > MAX_VALUES:
                raise _error(node, f"merges more than {MAX_VALUES} keys")

    _add_plain(YamlReader)
    YamlReader.add_constructor(_IN_DOUBT, _refused)
    YamlReader.add_constructor(f"{_TAG}int", _integer)
    return YamlReader


def _add_plain(of: Any) -> None:
    for tag, pattern, first in _PLAIN:
        of.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z", re.X), list(first))


def _error(node: Any, words: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, words, node.start_mark)


def _refused(_: Any, node: yaml.ScalarNode) -> None:
    text = node.value
    meanings = yaml.safe_load(text), int(text) if re.fullmatch(r"[-+]?\d+", text) else text
    one, two = map(json.dumps, meanings)
    raise _error(node, f"{text} is {one} in YAML 1.1 and {two} in YAML 1.2; write the one that is meant")


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    try:
        return int(loader.construct_scalar(node), 0)
    except ValueError as exc:  # a number of thousands of digits
        raise _error(node, f"cannot be read: {exc}") from exc


class _QuotingDumper(yaml.SafeDumper):
    """Quotes what either version would take for something else than text."""


_add_plain(_QuotingDumper)
_READER = reader_from(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def composed(text: str) -> yaml.Node | None:
    """The nodes of a YAML text, with their lines; None if it is empty.

    Raises:
        yaml.YAMLError: it is no YAML, or nested too deeply.
    """
    depth = 0
    # What composes nodes in C recurses without a limit.
    for count, event in enumerate(yaml.parse(text, Loader=_READER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > 2 * MAX_DEPTH:
            raise _error(event, "is nested too deeply")
        if count > _EVENTS * MAX_VALUES:
            raise _error(event, f"has more than {MAX_VALUES} values")
    root: yaml.Node | None = _READER(text).get_single_node()
    return root


def value_of(node: yaml.Node | None) -> Any:
    """The plain data of nodes.

    Raises:
        yaml.YAMLError: a value that is refused; the error has its place.
    """
    return None if node is None else _READER("").construct_document(node)


def read_yaml(text: str) -> Any:
    """The plain data of a YAML text.

    Raises:
        yaml.YAMLError: as `composed` and `value_of`.
    """
    return value_of(composed(text))


def yaml_of(data: object, **how: Any) -> str:
    """Plain data as YAML, with its fields in order; `how` goes to `yaml.dump`."""
    text: str = yaml.dump(data, Dumper=_QuotingDumper, sort_keys=False, **how)
    return text
