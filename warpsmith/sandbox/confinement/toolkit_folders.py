"""Folders of toolkits that a child may read."""

from pathlib import Path

from warpsmith.registry import Kind, load_all


def toolkit_folders() -> tuple[Path, ...]:
    """Folders of the toolkits of every registered language, as far as they exist."""
    return tuple(folder for folders in load_all(Kind.TOOLKIT) for folder in folders())
