"""Make sure that `tests/browser` has a browser: `python scripts/browser.py [--or-skip]`.

One that is there is taken. Else root on Debian gets one from Debian; anybody else is told what to install.
"""

import argparse
import os
import platform
import subprocess
import sys

from testbed.chromium import ADVICE, PACKAGES, chromium_path


def installed_by_root() -> bool:
    """Whether this process may install packages, and knows their names."""
    return os.geteuid() == 0 and platform.freedesktop_os_release().get("ID") == "debian"


def install() -> None:
    """Install Debian's browser.

    Raises:
        subprocess.CalledProcessError: the package manager failed; it has said why.
    """
    here = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *PACKAGES)
    for command in (("apt-get", "update", "--quiet"), install):
        subprocess.run(command, env=here, check=True)


def main() -> int:
    """The exit code is 1 if there is no browser; with `--or-skip` it is 0 nevertheless."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--or-skip", action="store_true", help="accept that there is none: its tests skip")
    may_lack = parser.parse_args().or_skip
    try:
        if chromium_path() is None and installed_by_root():
            install()
        reason = ADVICE if (path := chromium_path()) is None else None
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = f"{exc}; {ADVICE}"
    if reason is None:
        print(f"browser: {path}")
        return 0
    print(reason, file=sys.stderr)
    return int(not may_lack)


if __name__ == "__main__":
    sys.exit(main())
