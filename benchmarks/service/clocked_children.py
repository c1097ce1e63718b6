"""Importing this in a fork server gives each of its device and reference children a clock.

The bench names it among the modules that fork servers import; nothing else does.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.service.child_clock import install

CLOCKED = ("device", "reference")


def _clocked(main: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def begun(argument: dict[str, Any]) -> None:
        if "private" in argument:
            install(Path(argument["private"]))
        main(argument)

    return begun


for _name in CLOCKED:
    _module: Any = importlib.import_module(f"warpsmith.sandbox.children.{_name}_child")
    _module.main = _clocked(_module.main)
