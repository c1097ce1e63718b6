"""Which programs may work on one database at the same time."""

from warpsmith import __version__

PROTOCOL = 1
"""Of what tasks are given and bring back, and of what rows mean. Raise it with every change that a program
of before would misread, where the schema stays as it is."""
VERSION = f"{__version__}+{PROTOCOL}"
"""What a worker registers with; all that live at one time have the same."""
