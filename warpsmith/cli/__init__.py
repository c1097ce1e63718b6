"""The command line."""

from warpsmith.cli.app import main

__all__ = ["main"]
