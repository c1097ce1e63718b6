"""Versions of programs that may work on one database at the same time."""

from warpsmith import __version__

PROTOCOL = 1
"""Version of task payloads, results and row semantics. Raise it when an older program would misread new rows
although the schema is unchanged."""
VERSION = f"{__version__}+{PROTOCOL}"
"""Version with which a worker registers; all living workers have the same."""
