"""Registry of extensions: the only way in which ring 1 reaches ring 2 and other packages' extensions.

An extension names what it adds as `module:object` by kind; a module is imported when its object is asked for.
Those of this package are in `EXTENSIONS`; another package declares an entry point of the group `GROUP` whose
object is an `Extension`. The module of an `Extension` imports nothing of warpsmith but this registry, and
that of a language `warpsmith.domain.language` only: their names are needed before anything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

EXTENSIONS = (
    "warpsmith.extensions.clients.extension:EXTENSION",
    "warpsmith.extensions.scaffold.extension:EXTENSION",
    "warpsmith.extensions.rules.extension:EXTENSION",
    "warpsmith.extensions.hip.extension:EXTENSION",
    "warpsmith.extensions.triton.extension:EXTENSION",
    "warpsmith.extensions.importers.extension:EXTENSION",
    "warpsmith.extensions.exports.extension:EXTENSION",
)
GROUP = "warpsmith.extensions"
"""Group of entry points in which other packages declare their extensions."""


class Kind(StrEnum):
    """Ports that an extension can fill; each value names the contract of its objects."""

    LANGUAGE = "language"
    """`warpsmith.domain.language.Language`, by name."""
    RULE = "rule"
    """Class as `warpsmith.extensions.rules.analysis.draft.Rule`, by name, in the order of composition."""
    LAST_RULE = "last rule"
    """The same, for rules that run when all bodies of the kernel stand in its source."""
    REWRITER = "rewriter"
    """Module as `warpsmith.domain.jobs.rewriter.Rewriter`; one only."""
    OFFLINE_PROVIDER = "offline provider"
    """Class as `agents.offline.OfflineProvider`, which answers agent steps without a model; one only."""
    SOURCE_CHECK = "source check"
    """`(Job, Sequence[DeviceInfo]) -> Iterable[Finding]`: a check of a job against its source."""
    LAUNCH_CHECK = "launch check"
    """`(Job, scope, include folders) -> Iterable[Finding]`: a check of a job's launch against its source."""
    SEARCHER = "searcher"
    """`(FeasibleSet, seed) -> SetSearcher`, by the name that a job gives."""
    IMPORTER = "importer"
    """Module as `warpsmith.extensions.scaffold.ports.Importer`: reads files of another tool for `init`."""
    EXPORT = "export"
    """`(ExportRequest) -> Mapping[str, str]`, by format: texts of an export by path."""
    SCAFFOLD = "scaffold"
    """Module as `warpsmith.extensions.scaffold.ports.Scaffold`, by language: writes job files for `init`."""
    DRAFT = "draft"
    """`(source path, job file path, Backend, entry, macros) -> str`: text of a job file; one only."""
    COMMANDS = "commands"
    """`(Typer) -> None`: adds commands to the command line."""
    HTTP = "http"
    """`(FastAPI) -> object` that adds routes; its `open()` is an asynchronous context around serving."""


@dataclass(frozen=True)
class Extension:
    """An extension: its objects as `module:object`, by kind and name."""

    provides: Mapping[Kind, Mapping[str, str]] = field(default_factory=dict)


@cache
def extensions() -> tuple[Extension, ...]:
    """Every extension: those of this package in the registry's order, then those of other packages by name.

    Raises:
        ImportError, AttributeError: an extension cannot be loaded.
    """
    others = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return (*map(_object, EXTENSIONS), *(entry.load() for entry in others))


@cache
def named(kind: Kind) -> Mapping[str, str]:
    """Names of all objects of a kind, each with its `module:object`, in the order of the extensions.

    Raises:
        ValueError: two extensions use one name.
    """
    found: dict[str, str] = {}
    for extension in extensions():
        for name, place in extension.provides.get(kind, {}).items():
            if name in found:
                raise ValueError(f"two extensions provide the {kind} {name!r}: {found[name]} and {place}")
            found[name] = place
    return found


def load(kind: Kind, name: str) -> Any:
    """The object of a kind and name, imported at its first use.

    Raises:
        KeyError: no extension provides it.
    """
    return _object(named(kind)[name])


def load_all(kind: Kind) -> tuple[Any, ...]:
    """All objects of a kind, in the order of the extensions."""
    return tuple(map(_object, named(kind).values()))


def load_only(kind: Kind) -> Any:
    """The object of a kind that one extension provides.

    Raises:
        ValueError: none or several do.
    """
    (found,) = load_all(kind)
    return found


@cache
def _object(place: str) -> Any:
    module, _, name = place.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found
