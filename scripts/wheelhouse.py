"""Collect the wheels that an offline x86-64 GPU node needs, from the hashed lock.

    python scripts/wheelhouse.py --python 3.12 --out .wheelhouse [--extra DIR] [--skip NAME ...]

`--extra` copies wheels that no index has (PyCUDA, built for the node's CUDA and Python). `--skip`
leaves out what the node has already; the sizes are printed, largest first.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "node.txt"
GLIBC_MINOR_VERSIONS = (39, 35, 34, 31, 28, 27, 24, 17)
LIMIT_BYTES = 64 << 20


def pinned(lock: str, python: str) -> list[str]:
    """`name==version` of every requirement of the lock that holds for that Python on Linux."""
    from packaging.markers import Marker

    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_system": "Linux",
    }
    found = []
    for match in re.finditer(r"^([A-Za-z0-9_.\[\]-]+==[^\s;\\]+)(?:\s*;\s*([^\\\n]+))?", lock, re.MULTILINE):
        if match[2] is None or Marker(match[2].strip()).evaluate(environment):
            found.append(re.sub(r"\[.*?\]", "", match[1]))
    return found


def download(requirements: list[str], python: str, out: Path) -> None:
    """Fetch wheels for that Python; raises CalledProcessError where one has none."""
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in GLIBC_MINOR_VERSIONS]
    platforms += ["manylinux2014_x86_64", "manylinux1_x86_64", "any"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", python, "--implementation", "cp", "--dest", str(out)]
    for platform in platforms:
        command += ["--platform", platform]
    subprocess.run([*command, *requirements], check=True)


def main() -> int:
    """See the module's text; the exit code is 1 where the wheels exceed 64 MiB."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--out", type=Path, default=ROOT / ".wheelhouse")
    parser.add_argument("--extra", type=Path)
    parser.add_argument("--skip", nargs="*", default=[])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for old in arguments.out.glob("*.whl"):
        old.unlink()
    skip = {name.lower() for name in arguments.skip}
    wanted = [
        r
        for r in pinned(LOCK.read_text(), arguments.python)
        if r.split("==", maxsplit=1)[0].lower() not in skip
    ]
    download(wanted, arguments.python, arguments.out)
    if arguments.extra:
        for wheel in arguments.extra.glob("*.whl"):
            shutil.copy(wheel, arguments.out)
    install = "python3 -m pip install --no-index --no-deps --find-links {0} --target SITE {0}/*.whl"
    line = install.format(arguments.out.name)
    (arguments.out / "INSTALL.txt").write_text(f"{line} && export PYTHONPATH=SITE\n")
    sizes = sorted(((w.stat().st_size, w.name) for w in arguments.out.glob("*.whl")), reverse=True)
    for size, name in sizes[:12]:
        print(f"{size / 2**20:7.1f} MiB  {name}")
    total = sum(size for size, _ in sizes)
    print(f"{len(sizes)} wheels, {total / 2**20:.1f} MiB in {arguments.out}; install: {line}")
    return int(total > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
