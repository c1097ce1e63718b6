"""A pool that does nothing, until it is told to end."""

import time


def main(arguments: list[str] | None = None) -> None:
    """Wait for the end."""
    time.sleep(60)
