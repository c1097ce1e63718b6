"""Finds the line of a job file on which a field stands."""

import yaml

_MERGE = "<<"


class JobLines:
    """Line numbers of the fields of one YAML or JSON text.

    Args:
        root: nodes of the text; None: no lines are known.
    """

    def __init__(self, root: yaml.Node | None) -> None:
        self._root = root

    def of(self, field: str, inner: int | None = None) -> int | None:
        """The line of a field, from 1. If the file lacks the field, the line of the mapping that would
        contain it.

        Args:
            field: dotted path, as in error messages.
            inner: a line of the field's own text, from 1; added if the text is a block (`|`).
        """
        if self._root is None:
            return None
        node, line = self._root, self._root.start_mark.line
        parts = field.split(".") if field else []
        while parts:
            taken = next((n for n in (len(parts), 1) if _child(node, ".".join(parts[:n]))), 0)
            found = _child(node, ".".join(parts[:taken])) if taken else None
            if found is None:
                # A path also names the kind of a union (`reference.numpy.source`), which no file contains.
                parts = parts[1:] if len(parts) > 1 and _child(node, parts[1]) else []
                continue
            node, line = found
            parts = parts[taken:]
        if inner is not None and isinstance(node, yaml.ScalarNode) and node.style == "|":
            return int(node.start_mark.line) + 1 + inner
        return int(line) + 1

    def repeated_key(self) -> tuple[str, int, int] | None:
        """A key that a mapping of the text has twice, and both its lines, from 1; None if no key repeats."""
        pending, seen = [self._root], set[int]()
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue  # an alias
            seen.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                pending += node.value
            if not isinstance(node, yaml.MappingNode):
                continue
            lines: dict[str, int] = {}
            for key, value in node.value:
                pending.append(value)
                if not isinstance(key, yaml.ScalarNode):
                    continue
                line = int(key.start_mark.line) + 1
                if key.value in lines:
                    return key.value, lines[key.value], line
                lines[key.value] = line
        return None


def _child(node: yaml.Node, name: str) -> tuple[yaml.Node, int] | None:
    """The value of a key, or the item with that number, and the line (from 0) on which it begins."""
    if isinstance(node, yaml.SequenceNode):
        item = node.value[int(name)] if name.isdecimal() and int(name) < len(node.value) else None
        return None if item is None else (item, item.start_mark.line)
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in reversed(node.value):
        if isinstance(key, yaml.ScalarNode) and key.value == name:
            return value, key.start_mark.line
    merged = [value for key, value in node.value if getattr(key, "value", None) == _MERGE]
    return next((found for value in merged if (found := _child(value, name)) is not None), None)
