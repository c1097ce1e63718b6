"""Tables of a recorded fused MoE: what searches with a few evaluations find, beside the exhaustive one.

    python -m benchmarks.triton.tables --recording FILE --out FOLDER [--share 0.03] [--known FOLDER]

An evaluation is a configuration that was launched on one batch size; those of the engine's default count.
What a device refuses before a launch does not count. A search sees the first timing of a configuration. Of
the three best of each batch size the one with the best repeated timing makes the row, as a verification would
choose; if that is no faster than the default, the row is the default.

With a folder of an engine's tables (`.../fused_moe/configs`), one more search knows the winners of those for
other layers; a table for the recorded one is left out.
"""

import argparse
import gzip
import json
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.provenance import plain_command, record_folder
from benchmarks.triton.moe import NUMBERS, Layer, default_configuration
from warpsmith.commit import commit_name
from warpsmith.domain.jobs.job import SearcherName
from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.templates.space import (
    SHAPE_PREFIX,
    Configuration,
    Constraint,
    Parameter,
    Space,
)
from warpsmith.extensions.exports.tables.engines import MoeShape
from warpsmith.extensions.exports.tables.known_tables import known_winners
from warpsmith.search.factory import Hints, make_searcher
from warpsmith.search.spaces.feasible_set import enumerate_space

SHAPE = f"{SHAPE_PREFIX}M"
DEVICE = "NVIDIA H100"
"""What the recordings were made on."""
FINALISTS = 3
WITHIN = 1.02


@dataclass(frozen=True)
class Recording:
    """A kernel measured whole: times in µs by batch size and configuration."""

    layer: Layer
    times: Mapping[tuple[int, ...], tuple[float, float] | None]
    """First and repeated timing; None: refused. The key is the batch size and the configuration's numbers."""
    made: dict[str, Any]

    @property
    def tokens(self) -> list[int]:
        """The batch sizes."""
        return sorted({key[0] for key in self.times})

    def time(self, tokens: int, configuration: Mapping[str, Any]) -> tuple[float, float] | None:
        """Times of a configuration; None if it was refused or is not recorded."""
        return self.times.get((tokens, *(configuration[n] for n in NUMBERS)))

    def default(self, tokens: int) -> tuple[float, float]:
        """Times of the engine's default."""
        found = self.time(tokens, default_configuration(self.layer, tokens))
        assert found is not None, "the default runs"
        return found

    def best_us(self, tokens: int) -> float:
        """The exhaustive table's time."""
        return min(t[1] for key, t in self.times.items() if t is not None and key[0] == tokens)

    def space(self, tokens: int | None = None) -> Space:
        """The swept configurations, of one batch size or of all with the shape as a parameter."""
        swept = [k for k in self.times if tokens in (None, k[0])]
        defaults = {
            (m, *default_configuration(self.layer, m).values()) for m in self.tokens if tokens in (None, m)
        }
        counts = {n: [k[i + 1] for k in swept if k not in defaults] for i, n in enumerate(NUMBERS)}
        parameters = [Parameter(name=n, values=tuple(sorted(set(v)))) for n, v in counts.items()]
        if tokens is not None:
            return Space(parameters=tuple(parameters))
        parameters.append(Parameter(name=SHAPE, values=tuple(self.tokens)))
        rules = [Constraint(expression=f"M != {m} or {SHAPE} == {m}") for m in self.tokens]
        return Space(parameters=tuple(parameters), constraints=tuple(rules))


def read(path: Path) -> Recording:
    """A recording of `benchmarks.triton.record_moe`."""
    with gzip.open(path, "rt") as stream:
        data = json.load(stream)
    times: dict[tuple[int, ...], tuple[float, float] | None] = {}
    for row in data["rows"]:
        key = (row["M"], *(row[n] for n in NUMBERS))
        first = statistics.median(row["us"]) if "us" in row else None
        times[key] = None if first is None else (first, statistics.median(row.get("again_us", [first])))
    return Recording(Layer(**data["layer"]), times, data["made"])


def table(seen: Mapping[int, Sequence[tuple[float, float]]], of: Recording) -> dict[int, float]:
    """Each row's time over the exhaustive one's."""
    found = {}
    for tokens, times in seen.items():
        chosen = min(t[1] for t in sorted(times)[:FINALISTS])
        found[tokens] = min(chosen, of.default(tokens)[1]) / of.best_us(tokens)
    return found


def together(of: Recording, evaluations: int, seed: int, folder: Path | None = None) -> dict[int, float]:
    """One search over all batch sizes, if there is a folder of tables with the chances that they tell."""
    feasible = enumerate_space(of.space(), [{"M": m} for m in of.tokens])
    known: list[tuple[Configuration, float | None]] = [
        ({**default_configuration(of.layer, m), SHAPE: m}, 1.0) for m in of.tokens
    ]
    shape = MoeShape(of.layer.experts, of.layer.rows // 2)
    told = () if folder is None else _others(folder, shape)
    searcher = make_searcher(
        SearcherName.SHAPES, feasible, seed, history=known, hints=Hints(known_winners=told)
    )
    seen = {m: [of.default(m)] for m in of.tokens}
    left = evaluations - len(of.tokens)
    while left > 0 and (asked := searcher.ask(1)):
        tokens = int(asked[0][SHAPE])
        time = of.time(tokens, asked[0])
        searcher.tell(asked[0], None if time is None else time[0] / of.default(tokens)[0])
        if time is not None:
            seen[tokens].append(time)
            left -= 1
    return table(seen, of)


def _others(folder: Path, shape: MoeShape) -> list[KnownWinner]:
    """Winners of all layers but this one, whose tables hold what is looked for."""
    with TemporaryDirectory() as kept:
        own = shape.file("vLLM", "").rpartition("/")[2].partition("device_name")[0]
        shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns(f"{own}*"))
        return known_winners(Path(kept), shape, DEVICE)


def apart(name: SearcherName, of: Recording, evaluations: int, seed: int) -> dict[int, float]:
    """A search of its own for each batch size, as engines' tuners have."""
    seen = {}
    for place, tokens in enumerate(of.tokens):
        searcher = make_searcher(name, enumerate_space(of.space(tokens), []), 1000 * seed + place)
        seen[tokens] = [of.default(tokens)]
        left = evaluations // len(of.tokens) - 1
        while left > 0 and (asked := searcher.ask(1)):
            time = of.time(tokens, asked[0])
            searcher.tell(asked[0], None if time is None else time[0])
            if time is not None:
                seen[tokens].append(time)
                left -= 1
    return table(seen, of)


KNOWN = "one search over shapes, told other layers' winners"
METHODS: dict[str, Callable[[Recording, int, int], dict[int, float]]] = {
    "one search over shapes": together,
    "default searcher, each alone": partial(apart, SearcherName.DEFAULT),
    "Optuna's TPE, each alone": partial(apart, SearcherName.TPE),
    "random, each alone": partial(apart, SearcherName.RANDOM),
}


def _run(path: Path, name: str, evaluations: int, folder: Path | None, seed: int) -> dict[int, float]:
    if name == KNOWN:
        return together(read(path), evaluations, seed, folder)
    return METHODS[name](read(path), evaluations, seed)


def main() -> int:
    """Run every method, and write `NAME.json` and `NAME.md`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--recording", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.03, help="of the exhaustive evaluations")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--known", type=Path, help="a folder of an engine's tables")
    asked = parser.parse_args()
    of = read(asked.recording)
    launched = sum(t is not None for t in of.times.values())
    evaluations = int(asked.share * launched)
    methods = {}
    with ProcessPoolExecutor() as pool:
        for name in [KNOWN] * (asked.known is not None) + [*METHODS]:
            run = partial(_run, asked.recording, name, evaluations, asked.known)
            methods[name] = _summary(list(pool.map(run, range(asked.seeds))), of)
            print(name, methods[name]["rows_within"], methods[name]["tables_within"], flush=True)
    record = {
        "commit": commit_name(),
        "command": plain_command("python -m benchmarks.triton.tables " + " ".join(sys.argv[1:])),
        "recording": of.made | {"file": asked.recording.name},
        "layer": vars(of.layer),
        "exhaustive_evaluations": launched,
        "refused": len(of.times) - launched,
        "evaluations": evaluations,
        "within": WITHIN,
        "seeds": asked.seeds,
        "default_over_best": {m: round(of.default(m)[1] / of.best_us(m), 3) for m in of.tokens},
        "best_us": {m: round(of.best_us(m), 2) for m in of.tokens},
        "methods": methods,
    }
    (asked.out / f"tables-{of.layer.name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (asked.out / f"tables-{of.layer.name}.md").write_text(_page(record))
    return 0


def _summary(tables: Sequence[dict[int, float]], of: Recording) -> dict[str, Any]:
    rows = [value for found in tables for value in found.values()]
    return {
        "rows_within": round(sum(v <= WITHIN for v in rows) / len(rows), 3),
        "tables_within": round(sum(max(f.values()) <= WITHIN for f in tables) / len(tables), 3),
        "median": {m: round(statistics.median(f[m] for f in tables), 4) for m in of.tokens},
        "worst": {m: round(max(f[m] for f in tables), 4) for m in of.tokens},
    }


def _page(record: Mapping[str, Any]) -> str:
    layer, tokens = record["layer"], list(record["best_us"])
    lines = [
        f"# Fused MoE `{layer['name']}`: tables with {record['evaluations']} evaluations",
        "",
        f"{record['exhaustive_evaluations']} launched configurations over {len(tokens)} batch sizes on "
        f"{record['recording']['device']}, {record['recording']['compiler']}; {record['seeds']} seeds.",
        "",
        "| | rows within 2 % | whole tables | " + " | ".join(f"M = {m}" for m in tokens) + " |",
        "|---|---|---|" + "---|" * len(tokens),
        "| engine's default | | | "
        + " | ".join(f"{v:.2f}" for v in record["default_over_best"].values())
        + " |",
    ]
    for name, found in record["methods"].items():
        cells = [f"{found['median'][m]:.3f} ({found['worst'][m]:.2f})" for m in found["median"]]
        share = f"{found['rows_within']:.0%} | {found['tables_within']:.0%}"
        lines.append(f"| {name} | {share} | " + " | ".join(cells) + " |")
    lines += ["", "Times over the exhaustive table's: median of the seeds, and the worst.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
