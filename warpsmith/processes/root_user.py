"""Refusal or warning of a worker that is root: its children run as its user, with its rights."""

import logging
import os

from warpsmith.errors import Unavailable

WORDS = "this worker runs as root, and kernels that others post run as its user"

log = logging.getLogger(__name__)


def refuse_root(allowed: bool) -> None:
    """Refuse to work as root for others.

    Args:
        allowed: the setting `allow_root`.

    Raises:
        Unavailable: this process is root, and that is not allowed; the message names the setting.
    """
    if os.geteuid() == 0 and not allowed:
        fix = "start it as another user, or set WARPSMITH_ALLOW_ROOT=true (docs/running-a-fleet.md, As root)"
        raise Unavailable(f"{WORDS}: {fix}")


def warn_of_root(allowed: bool) -> None:
    """Log that this process works as root, unless that is allowed."""
    if os.geteuid() == 0 and not allowed:
        log.warning("%s; WARPSMITH_ALLOW_ROOT=true says that you know", WORDS)
