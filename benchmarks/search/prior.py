"""What recorded kernels say of the weights of the model's contributions: the prior of `search.covariance`.

`python -m benchmarks.search.prior --spaces FOLDER` writes prior.json: mean and deviation of the fitted log
weights by kind of contribution, over all kernels ("all") and without each kernel.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.search.spaces import RecordedSpace, load_all
from warpsmith.search.models import gaussian_process
from warpsmith.search.models.covariance import Kind, Prior, Tables
from warpsmith.search.searchers.portfolio import WINSOR

POINTS = 100
"""Random configurations of a fit, and as many again from the fastest quarter."""
DRAWS = 3
STEPS = 150
WIDE: Prior = dict.fromkeys(Kind, (-1.0, 3.0))
"""The prior of these fits, wide enough to let the recordings speak."""

ALL = "all"
RECORD = Path("benchmarks/results/search/prior.json")

Weights = list[tuple[Kind, float]]


def fitted(space: RecordedSpace) -> Weights:
    """The log weight of every contribution, mean over draws."""
    tables = Tables(space.feasible)
    times = np.array(
        [
            space.time(c) if space.knows(c) else None
            for c in map(space.feasible.configuration, range(len(space.feasible)))
        ],
        float,
    )
    ran = np.flatnonzero(np.isfinite(times))
    fast = ran[np.argsort(times[ran])[: ran.size // 4]]
    prior = np.array([*(WIDE[k] for k in tables.kinds), (math.log(gaussian_process.NOISE), 1.0)])
    found = []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        rows = np.union1d(*(rng.choice(part, POINTS, replace=False) for part in (ran, fast)))
        logs = np.log(times[rows])
        logs = np.minimum(logs, np.quantile(logs, WINSOR))
        targets = (logs - logs.mean()) / logs.std()
        codes = tables.codes[rows]
        start = np.ones(len(tables))
        weights, _ = gaussian_process.fit(
            tables.gather(codes, codes), targets, start, gaussian_process.NOISE, prior, steps=STEPS
        )
        found.append(np.log(weights))
    return list(zip(tables.kinds, np.mean(found, axis=0).tolist(), strict=True))


def summarised(weights: Sequence[Weights]) -> Prior:
    """Mean and deviation by kind, to one decimal; the wide prior's where nothing was seen."""
    out = {}
    for kind in Kind:
        seen = [w for part in weights for k, w in part if k is kind]
        out[kind] = (round(float(np.mean(seen)), 1), round(float(np.std(seen)), 1)) if seen else WIDE[kind]
    return out


def without_each_kernel(spaces: Sequence[RecordedSpace]) -> dict[str, Prior]:
    """By kernel: the prior from the other kernels; under "all": from all."""
    weights = {s.name: fitted(s) for s in spaces}
    left_out = [*sorted({s.kernel for s in spaces}), ALL]
    return {k: summarised([weights[s.name] for s in spaces if s.kernel != k]) for k in left_out}


def read(path: Path, kernel: str) -> Prior:
    """The prior that knows nothing of a kernel."""
    kept = json.loads(path.read_text())
    return {Kind(k): (mean, deviation) for k, (mean, deviation) in kept.get(kernel, kept[ALL]).items()}


def main() -> None:
    """Fit and write the priors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.prior", description=__doc__)
    parser.add_argument("--spaces", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    spaces = load_all(options.spaces)
    priors = without_each_kernel(spaces)
    text = {kernel: {k.value: v for k, v in prior.items()} for kernel, prior in priors.items()}
    options.out.write_text(json.dumps(text, indent=1) + "\n")
    print(json.dumps(text))


if __name__ == "__main__":
    main()
