"""Make sure that tests of HIP have a clang that compiles for AMD: `python scripts/clang.py [--or-skip]`.

One that is there is taken. Else root on Debian gets one from Debian; anybody else is told what to install.
"""

import sys

from scripts.debian_program import provided
from warpsmith.backends.hip_clang import OLDEST, find_clang

PACKAGES = (f"clang-{OLDEST}", f"lld-{OLDEST}")
ADVICE = (
    f"no clang for tests of HIP: install version {OLDEST} or newer and its lld (on Debian: apt-get install "
    f"{' '.join(PACKAGES)})"
)


def main() -> int:
    """The exit code is 1 if there is no clang; with `--or-skip` it is 0 nevertheless."""
    return provided("clang", find_clang, PACKAGES, ADVICE, __doc__ or "")


if __name__ == "__main__":
    sys.exit(main())
