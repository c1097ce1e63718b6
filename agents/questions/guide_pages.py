"""Guides: short pages on how kernels of one form become faster, each with a head that says what it is for."""

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from warpsmith.domain.base import Frozen
from warpsmith.domain.device import Backend

FOLDER = Path(__file__).parents[1] / "guides"
NO_RECORD = "none yet"
"""The record of a guide of which no gain was measured."""
MOST_LINES = 40
"""Lines of a page, head included: what is longer costs more to read than it saves."""

DeviceKind = Literal["gpu", "cpu"]
Feature = Literal[
    "row", "reduction", "gather", "transpose", "stencil", "product", "quantisation", "launch_bound", "any"
]
"""A form of a kernel, see `guide_finding.features_of`; `any` is a feature of every kernel."""


class Guide(Frozen):
    """A page and its head."""

    name: str = Field(pattern=r"^[a-z_]{1,32}$")
    about: str = Field(min_length=1, max_length=120)
    """Subject, in a line."""
    devices: tuple[DeviceKind, ...] = Field(min_length=1)
    backends: tuple[Backend, ...] = Field(min_length=1)
    """Back ends whose kernels it is for."""
    features: tuple[Feature, ...] = Field(min_length=1)
    """Features of which a kernel must have one for the guide to fit."""
    unless: tuple[Feature, ...] = ()
    """Features of which a kernel must have none for the guide to fit."""
    rank: int = Field(ge=1, le=9)
    """Place among the guides that fit; the lowest rank comes first."""
    sources: str = Field(min_length=1)
    """From where its facts are."""
    record: str = Field(min_length=1)
    """The record that shows its gain on kernels that it was not written from, or `NO_RECORD`."""
    text: str

    def fits(self, device: DeviceKind, backend: Backend, features: frozenset[str]) -> bool:
        """True if the guide is for such a device and such a kernel."""
        suited = device in self.devices and backend in self.backends
        return suited and bool(features & {*self.features}) and not features & {*self.unless}

    @property
    def line(self) -> str:
        """Entry of the guide in a list of guides."""
        return f"{self.about} (recorded gain: {self.record})"

    @property
    def page(self) -> str:
        """Text for the guide's reader."""
        return f"{self.about}\nRecorded gain: {self.record}. Sources: {self.sources}.\n\n{self.text}"


@lru_cache
def guides() -> dict[str, Guide]:
    """Every guide by its name."""
    found = [parse(path.read_text(encoding="utf-8"), path.stem) for path in sorted(FOLDER.glob("*.md"))]
    return {guide.name: guide for guide in found}


def parse(page: str, name: str) -> Guide:
    """A guide from its page: a head of `field: value` lines, an empty line, the text.

    Raises:
        ValueError: the head lacks a field, or one has no such value; the message names both.
    """
    head, _, text = page.partition("\n\n")
    values: dict[str, object] = dict(_field(line, name) for line in head.splitlines())
    try:
        return Guide.model_validate(values | {"name": name, "text": text.strip()})
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"guide {name}: {where}: {first['msg']}") from exc


def _field(line: str, name: str) -> tuple[str, object]:
    field, colon, value = line.partition(":")
    if not colon:
        raise ValueError(f"guide {name}: {line[:80]!r} is no `field: value`")
    listed = field in ("devices", "backends", "features", "unless")
    return field, tuple(part.strip() for part in value.split(",")) if listed else value.strip()
