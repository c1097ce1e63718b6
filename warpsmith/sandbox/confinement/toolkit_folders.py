"""Folders of toolkits that a child may read."""

from pathlib import Path

from warpsmith.domain.language import languages


def toolkit_folders() -> tuple[Path, ...]:
    """Folders of the toolkits of every language, as far as they exist."""
    return tuple(folder for language in languages().values() for folder in language.toolkit_folders())
