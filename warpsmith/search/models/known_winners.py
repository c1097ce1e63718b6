"""Chances of configurations to be the best of their shape, by what won elsewhere.

A configuration's chance is the share of the winners that are like it, each weighed by how like its shape is:
of the simple densities that were tried the one that predicted held-out tables of engines best.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.templates.space import SHAPE_PREFIX, Parameter, ParameterValue, is_shape
from warpsmith.search.models.covariance import Floats
from warpsmith.search.spaces.feasible_set import FeasibleSet

STEP = 3.0
"""Logarithm that a chance loses for each value between a winner's and another; shapes count in octaves."""
ANY = 0.03
"""Chance of all configurations alike, over that by the winners."""


def log_chances(feasible: FeasibleSet, winners: Sequence[KnownWinner]) -> Floats | None:
    """Logarithm of the chance of every row; None if no winner tells of its shapes and parameters."""
    parameters = feasible.space.parameters
    shapes = [c for c, p in enumerate(parameters) if is_shape(p.name)]
    dimensions = [parameters[c].name.removeprefix(SHAPE_PREFIX) for c in shapes]
    known = [w for w in winners if set(dimensions) <= set(w.dimensions)]
    named = {name for w in known for name in w.configuration}
    told = [c for c, p in enumerate(parameters) if p.name in named]
    if not told:
        return None
    own, own_of = np.unique(feasible.codes[:, told], axis=0, return_inverse=True)
    sizes, size_of = np.unique(feasible.codes[:, shapes], axis=0, return_inverse=True)
    here = [[int(parameters[c].values[i]) for c, i in zip(shapes, row, strict=True)] for row in sizes]
    weights = _weights(here, dimensions, known)
    alike = np.ones((len(known), len(own)))
    for place, column in enumerate(told):
        alike *= _shares(parameters[column], known)[:, own[:, place]]
    found: Floats = np.log(weights @ alike + ANY / len(own))
    return found[size_of.reshape(-1), own_of.reshape(-1)]


def _weights(
    here: Sequence[Sequence[int]], dimensions: Sequence[str], known: Sequence[KnownWinner]
) -> Floats:
    """[shapes, winners]: how much each winner counts at each shape; the sum at a shape is 1."""
    points = [[w.dimensions[name] for name in dimensions] for w in known]
    away = ((_octaves(here)[:, None] - _octaves(points)[None]) ** 2).sum(axis=2)
    found: Floats = np.array([w.weight for w in known]) * np.exp(-0.5 * away)
    found /= np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    return found


def _shares(parameter: Parameter, known: Sequence[KnownWinner]) -> Floats:
    """[winners, values]: how likely each value is by each winner; the same for all where it tells nothing."""
    steps = np.arange(len(parameter.values))
    shares = np.exp(-STEP * np.abs(steps[:, None] - steps[None]))
    shares = np.vstack([shares / shares.sum(axis=1, keepdims=True), np.ones_like(steps)])
    nearest = [_nearest(parameter.values, w.configuration.get(parameter.name)) for w in known]
    found: Floats = shares[nearest]
    return found


def _octaves(numbers: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.log2(np.maximum(np.array(numbers, np.float64), 1.0))
    return found


def _nearest(values: Sequence[ParameterValue], value: ParameterValue | None) -> int:
    """Place of the value that is nearest in octaves; -1 if none was told, or for a word that is not there."""
    if value in values:
        return values.index(value)
    numbers = [
        v for v in (*values, value) if isinstance(v, int | float) and not isinstance(v, bool) and v > 0
    ]
    if len(numbers) != len(values) + 1:
        return -1
    octaves = np.log2(np.array(numbers, np.float64))
    return int(np.abs(octaves[:-1] - octaves[-1]).argmin())
