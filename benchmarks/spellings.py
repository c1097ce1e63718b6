"""How much of what the rules do to a kernel depends on how it is spelt.

    python -m benchmarks.spellings --draws N --seed S [--alone N] [--kernels NAME ...] [--out FILE]

Eight kernels (`testbed/kernels/plain_kernels.py`) are respelt at random and compute the same. A spelling
keeps the rules if the same rules apply as to the plain spelling, and the parameters have the same values.
The first table has the rate of each kernel; the second says how often a transformation alone, at some of its
places, loses a rule. A rate is only worth something with a seed that nobody has worked with before.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.provenance import plain_command
from testbed.kernels.equal_spellings import TRANSFORMATIONS, outline, plain_job, spelling, spelt_job
from testbed.kernels.kernel_kinds import Kind
from testbed.kernels.kernel_styles import BACKENDS
from testbed.kernels.plain_kernels import BASES
from warpsmith.commit import commit_name


class Plain:
    """A kernel in its plainest spelling, and what the rules make of it."""

    def __init__(self, base: Kind, backend: str) -> None:
        self.base, self.backend = base, backend
        self.source = plain_job(base, backend).kernel.text
        self.rules, self.parameters = outline(plain_job(base, backend))

    def difference(self, source: str) -> list[str]:
        """Rules that came or went, and parameters with other values; empty for an equal template."""
        rules, parameters = outline(spelt_job(self.base, self.backend, source))
        lost = [f"-{r}" for r in self.rules if r not in rules]
        came = [f"+{r}" for r in rules if r not in self.rules]
        both = sorted(self.parameters.keys() | parameters.keys())
        other = [f"values of {p}" for p in both if self.parameters.get(p) != parameters.get(p)]
        return lost + came or other

    def drawn(self, seed: int, draws: int) -> dict[str, Any]:
        """A row: how many of the drawn spellings keep the rules, and what the others lose."""
        lost: Counter[str] = Counter()
        failed: list[dict[str, Any]] = []
        for n in range(draws):
            source = spelling(self.base, self.backend, Random(f"{seed} {self.base.name} {self.backend} {n}"))
            if found := self.difference(source):
                lost.update(found)
                failed.append({"differs": found, "source": source})
        row = {"kernel": self.base.name, "backend": self.backend, "draws": draws}
        return row | {"kept": draws - len(failed), "lost": dict(lost.most_common()), "failed": failed}

    def alone(self, seed: int, times: int) -> dict[str, list[int]]:
        """By transformation: of how many different texts that it makes alone how many lose rules."""
        counts = {}
        for transformation in TRANSFORMATIONS:
            name = transformation.__name__
            rngs = [Random(f"{seed} {name} {self.base.name} {n}") for n in range(times)]
            texts = {transformation(self.source, rng) for rng in rngs} - {self.source}
            counts[name] = [sum(bool(self.difference(t)) for t in sorted(texts)), len(texts)]
        return counts


def page(rows: Sequence[dict[str, Any]], alone: dict[str, dict[str, list[int]]]) -> str:
    """Both tables; a cell of the second has failures and texts, and is empty where there was no place."""
    lines = ["| kernel | back end | kept | of | lost most |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        most = ", ".join(f"{what} {n}" for what, n in list(row["lost"].items())[:4])
        lines.append(f"| {row['kernel']} | {row['backend']} | {row['kept']} | {row['draws']} | {most} |")
    total, kept = (sum(row[key] for row in rows) for key in ("draws", "kept"))
    lines += [f"| all | | {kept} | {total} | |", ""]
    kernels = list(next(iter(alone.values())))
    lines += ["| alone | " + " | ".join(kernels) + " | all |", "| --- " * (len(kernels) + 2) + "|"]
    for name, cells in sorted(alone.items(), key=lambda kv: -sum(f for f, _ in kv[1].values())):
        told = [f"{failed}/{of}" if of else "" for failed, of in cells.values()]
        failed, of = (sum(c[n] for c in cells.values()) for n in (0, 1))
        lines.append(f"| {name} | {' | '.join(told)} | {failed}/{of} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print both tables and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=40, help="spellings of each kernel and back end")
    parser.add_argument("--alone", type=int, default=6, help="times that a transformation is applied alone")
    parser.add_argument("--seed", type=int, required=True, help="a number that has not been used yet")
    parser.add_argument("--kernels", nargs="+", choices=[b.name for b in BASES], metavar="NAME")
    parser.add_argument("--out", type=Path, help="JSON file for the record, with the spellings that failed")
    options = parser.parse_args()
    bases = [b for b in BASES if options.kernels is None or b.name in options.kernels]
    rows: list[dict[str, Any]] = []
    alone: dict[str, dict[str, list[int]]] = {t.__name__: {} for t in TRANSFORMATIONS}
    for base in bases:
        for backend in BACKENDS:
            plain = Plain(base, backend)
            rows.append(plain.drawn(options.seed, options.draws))
            for name, counts in plain.alone(options.seed, options.alone).items():
                before = alone[name].setdefault(base.name, [0, 0])
                alone[name][base.name] = [a + b for a, b in zip(before, counts, strict=True)]
    print(page(rows, alone), end="")
    if options.out:
        command = plain_command(" ".join(["python -m benchmarks.spellings", *sys.argv[1:]]))
        record = {"commit": commit_name(), "command": command, "rows": rows, "alone": alone}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
