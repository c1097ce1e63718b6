"""Hatchling's hook: names the commit in what is built, so that an installation needs no git."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[Any]):
    """Adds `warpsmith/_commit.txt`; a source distribution has it already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file outside of the tree, and have it packed."""
        package = Path(self.root, "warpsmith")
        commit = runpy.run_path(str(package / "commit.py"))
        if (package / commit["FILE"]).exists():
            return
        self._folder = tempfile.TemporaryDirectory()
        written = Path(self._folder.name, commit["FILE"])
        written.write_text(f"{commit['commit_name'](package)}\n")
        build_data["force_include"][str(written)] = f"warpsmith/{commit['FILE']}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove it."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
