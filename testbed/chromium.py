"""Where this machine's Chromium is; `make browser` installs one."""

import os
import shutil

VARIABLE = "WARPSMITH_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PACKAGES = ("chromium", "fonts-dejavu-core")
"""What Debian calls the browser, and a font: without one, no text has a width."""
ADVICE = (
    f"no browser for tests/browser: install Chromium (on Debian: apt-get install {' '.join(PACKAGES)}), "
    f"or name one in {VARIABLE}"
)


def chromium_path() -> str | None:
    """The program that `WARPSMITH_CHROMIUM` names, else the first on PATH; None if there is none.

    Raises:
        FileNotFoundError: the variable names no program.
    """
    if given := os.environ.get(VARIABLE):
        if (named := shutil.which(given)) is None:
            raise FileNotFoundError(f"{VARIABLE} is {given!r}, which is no program")
        return named
    return next(filter(None, map(shutil.which, NAMES)), None)
