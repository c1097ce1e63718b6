"""Make sure that `tests/browser` has a browser: `python scripts/browser.py [--or-skip]`.

One that is there is taken. Else root on Debian gets one from Debian; anybody else is told what to install.
"""

import sys

from scripts.debian_program import provided
from testbed.chromium import ADVICE, PACKAGES, chromium_path


def main() -> int:
    """The exit code is 1 if there is no browser; with `--or-skip` it is 0 nevertheless."""
    return provided("browser", chromium_path, PACKAGES, ADVICE, __doc__ or "")


if __name__ == "__main__":
    sys.exit(main())
