"""The licences of every locked package: `python scripts/licences.py` reads them from the index anew.

`make lock` calls it. The table in `requirements/licences.json` is what the gate and `make release` check, so
both need no network. A licence is an SPDX expression.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"
TABLE = REQUIREMENTS / "licences.json"
UNKNOWN = "unknown"
PERMISSIVE = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "HPND",
        "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib",
        "Apache-2.0 WITH LLVM-exception", "LicenseRef-Public-Domain",
    }
)  # fmt: skip
WEAK_COPYLEFT = frozenset(
    {
        "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0",
    }
)  # fmt: skip
_NVIDIA = (
    "NVIDIA's own licence; each user installs it from the index, and no archive or image of ours holds it"
)
EXCEPTIONS: Mapping[str, str] = {
    "nvidia-cuda-cccl": _NVIDIA,
    "nvidia-cuda-crt": _NVIDIA,
    "nvidia-cuda-nvrtc": _NVIDIA,
    "nvidia-cuda-runtime": _NVIDIA,
}
"""Packages that are used under another licence, with the reason."""
READ_BY_HAND: Mapping[str, str] = {
    "docutils": "BSD-2-Clause AND BSD-3-Clause AND LicenseRef-Public-Domain",
    "graphemeu": "MIT",
    "pocl-binary-distribution": "MIT",
    "pycuda": "MIT",
    "pywin32": "PSF-2.0",
}
"""Licences of packages whose metadata names none clearly, or that the index has as source only.

Those of docutils and graphemeu are from their own files. Those of PoCL, PyCUDA and pywin32, which is for
Windows only, are what their projects say; no file of the packages was read."""
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "zlib/libpng License": "Zlib",
}
"""SPDX identifiers of the classifiers that packages used before metadata had an expression."""
WORDS = {
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "3-clause bsd": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "mpl 2.0": "MPL-2.0",
}
"""SPDX identifiers of what packages write into the old field for free text."""


@dataclass(frozen=True, order=True)
class Pin:
    """A locked package."""

    name: str
    version: str


def pins(lock: str) -> set[Pin]:
    """The packages of a lock, on every platform."""
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", lock, re.MULTILINE)
    return {Pin(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in found}


def locked() -> set[Pin]:
    """The packages of all locks."""
    return {pin for path in REQUIREMENTS.glob("*.txt") for pin in pins(path.read_text())}


def licence_of(metadata: Mapping[str, Any]) -> str:
    """The licence that a package's metadata states, as an SPDX expression; `unknown` if none is clear.

    Args:
        metadata: its fields, in the JSON form of core metadata.
    """
    for field in ("license_expression", "license"):
        text = str(metadata.get(field) or "").strip()
        try:
            return str(canonicalize_license_expression(WORDS.get(text.lower(), text)))
        except InvalidLicenseExpression:
            continue
    stated = [c.split(" :: ")[-1] for c in metadata.get("classifier", ()) if c.startswith("License :: OSI")]
    if stated and all(name in CLASSIFIERS for name in stated):
        return " OR ".join(sorted({CLASSIFIERS[name] for name in stated}))
    return UNKNOWN


def permitted(expression: str) -> bool:
    """Whether one of the alternatives of an expression names permitted licences only.

    An expression with alternatives inside of parentheses has to be permitted throughout.
    """
    allowed = PERMISSIVE | WEAK_COPYLEFT
    alternatives = [expression] if "(" in expression else expression.split(" OR ")
    return any(
        all(part.strip("() ") in allowed for part in re.split(r" AND | OR ", alternative))
        for alternative in alternatives
    )


def problems(wanted: Iterable[Pin], table: Mapping[Pin, str]) -> Iterator[str]:
    """What is wrong with the licences of locked packages, a line for each package."""
    for pin in sorted(wanted):
        found = table.get(pin)
        if found is None:
            yield f"{pin.name} {pin.version}: not in requirements/licences.json; run make lock"
        elif found == UNKNOWN:
            yield f"{pin.name} {pin.version}: its licence is unknown; read it, and add it to READ_BY_HAND"
        elif not permitted(found) and pin.name not in EXCEPTIONS:
            yield f"{pin.name} {pin.version}: {found} is not on the list of permitted licences"


def read_table(text: str) -> dict[Pin, str]:
    """Licences by package, from the text of `licences.json`."""
    return {Pin(row["name"], row["version"]): row["licence"] for row in json.loads(text)}


def table_text(table: Mapping[Pin, str]) -> str:
    """The text of `licences.json`, a line for each package."""
    rows = [{"name": p.name, "version": p.version, "licence": table[p]} for p in sorted(table)]
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def markdown(table: Mapping[Pin, str]) -> str:
    """The table for a reader."""
    lines = ["| package | version | licence |", "|---|---|---|"]
    for pin in sorted(table):
        reason = f"; {EXCEPTIONS[pin.name]}" if pin.name in EXCEPTIONS else ""
        lines.append(f"| {pin.name} | {pin.version} | {table[pin]}{reason} |")
    return "\n".join(lines) + "\n"


def rounds(wanted: Iterable[Pin]) -> list[list[Pin]]:
    """The packages in groups in which no name comes twice: pip resolves one version of a name at a time."""
    groups: list[dict[str, Pin]] = []
    for pin in sorted(wanted):
        group = next((g for g in groups if pin.name not in g), None)
        if group is None:
            groups.append(group := {})
        group[pin.name] = pin
    return [list(group.values()) for group in groups]


def fetched(wanted: Iterable[Pin]) -> dict[Pin, str]:
    """Licences as the index's metadata states them; nothing is installed.

    Raises:
        subprocess.CalledProcessError: the index has no wheel of a package; its licence must be read by hand.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--no-deps", "--only-binary=:all:", "--report=-", "--ignore-requires-python"]
    # That of the images; pip asks for a target if it is not its own.
    command += ["--python-version=3.12", "--target=unused"]
    found = {}
    for group in rounds(wanted):
        named = [f"{pin.name}=={pin.version}" for pin in group]
        report = subprocess.run([*command, *named], capture_output=True, text=True, check=False)
        if report.returncode:
            sys.exit(report.stderr)
        metadata = [item["metadata"] for item in json.loads(report.stdout)["install"]]
        for pin in group:
            (own,) = (m for m in metadata if re.sub(r"[-_.]+", "-", m["name"]).lower() == pin.name)
            found[pin] = licence_of(own)
    return found


def main() -> int:
    """Write the table; the exit code is 1 if a licence is not permitted."""
    wanted = locked()
    known = {pin: READ_BY_HAND[pin.name] for pin in wanted if pin.name in READ_BY_HAND}
    table = fetched(wanted - known.keys()) | known
    TABLE.write_text(table_text(table))
    found = list(problems(wanted, table))
    print("\n".join([*found, f"{len(table)} licences in {TABLE.relative_to(ROOT)}"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
