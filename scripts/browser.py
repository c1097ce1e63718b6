"""Make sure that `tests/browser` has a browser: `python scripts/browser.py [--or-skip]`.

One that is there is taken. Else root on Debian gets one from Debian; anybody else is told what to install.
"""

import sys

from scripts.debian_packages import Needed, make_sure
from testbed.chromium import ADVICE, PACKAGES, chromium_path

BROWSER = Needed("browser", PACKAGES, ADVICE, chromium_path)

if __name__ == "__main__":
    sys.exit(make_sure(BROWSER, __doc__))
