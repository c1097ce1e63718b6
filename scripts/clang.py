"""Make sure that tests of HIP for AMD have a compiler: `python scripts/clang.py [--or-skip]`.

One that is there is taken. Else root on Debian gets one from Debian; anybody else is told what to install.
"""

import sys

from scripts.debian_packages import Needed, make_sure
from testbed.clang import ADVICE, PACKAGES, clang_path

CLANG = Needed("clang", PACKAGES, ADVICE, clang_path)

if __name__ == "__main__":
    sys.exit(make_sure(CLANG, __doc__))
