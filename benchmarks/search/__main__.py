"""`python -m benchmarks.search`: ours, random, TPE and Kernel Tuner's strategies on recorded spaces."""

import argparse
import json
import time
from pathlib import Path

from benchmarks.provenance import record_folder
from benchmarks.search.compare import METHODS, OURS, Run, compare, figures, read, save
from benchmarks.search.plot import svg
from benchmarks.search.report import overall, per_space
from benchmarks.search.spaces import load_all


def main() -> None:
    """Run and write search.json, search.md and search.svg."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--spaces", type=Path, required=True, help="folder of NAME-DEVICE.json.gz")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=record_folder, default=Path("benchmarks/results/search"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder of runs: read where complete, else written")
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="these only")
    options = parser.parse_args()
    began = time.perf_counter()
    every = load_all(options.spaces)
    restricted = [s for s in every if s.restrictions]
    names = {s.name for s in every}
    kept: dict[str, list[Run]] = {}
    for method in METHODS if options.keep else ():
        found = [r for r in read(options.keep, method) if r.space in names and r.seed < options.seeds]
        if len(found) == len(every) * options.seeds:
            kept[method] = found
    missing = [m for m in options.methods or METHODS if m not in kept]
    fresh = compare(options.spaces, every, options.seeds, missing, options.processes) if missing else []
    if options.keep:
        save(fresh, options.keep)
    runs = [r for k in kept.values() for r in k] + fresh
    if OURS not in {r.method for r in runs}:
        return
    main_figures, all_figures = figures(restricted, runs), figures(every, runs)
    minutes = (time.perf_counter() - began) / 60
    record = {
        "seeds": options.seeds,
        "minutes": minutes,
        "spaces_with_restrictions": main_figures,
        "all_spaces": all_figures,
    }
    (options.out / "search.json").write_text(json.dumps(_rounded(record), indent=1) + "\n")
    title = f"Geometric mean over {len(restricted)} spaces of the median best / optimum"
    curves = {m: f["curve"] for m, f in main_figures.items()}
    (options.out / "search.svg").write_text(svg(curves, title))
    lines = [
        "# Search on recorded spaces",
        "",
        f"{options.seeds} paired seeds; budgets in unique configurations that satisfy the restrictions,",
        "failed ones included. Ratio: geometric mean over spaces of the median best / optimum.",
        "Score: 0 is random search, 1 the optimum at once.",
        f"Took {minutes:.1f} minutes in {options.processes} processes"
        + (f", with kept runs of: {', '.join(sorted(kept))}." if kept else "."),
        "",
        f"## The {len(restricted)} spaces with restrictions",
        "",
        *overall(main_figures),
        "",
        "![convergence](search.svg)",
        "",
        f"## All {len(every)} spaces",
        "",
        *overall(all_figures),
        "",
        "## Space by space",
        "",
        *per_space(all_figures),
        "",
    ]
    (options.out / "search.md").write_text("\n".join(lines))
    print("\n".join(lines))


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
