"""Quantities in the constraints and the launch: threads per block, bytes of a tile, blocks.

A constraint such as `BLOCK_X * BLOCK_Y <= 1024` shows that the product matters. Each such subexpression
becomes a further coordinate of a configuration in the search's model.
"""

import ast
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from warpsmith.search.spaces.feasible_set import FeasibleSet, parameter_values
from warpsmith.search.spaces.launch_prior import SizedLaunch
from warpsmith.search.spaces.vectorised_constraints import evaluate

LEVELS = 64
"""Limit on distinct values of a feature; finer ones are merged."""
_OPERATORS = (ast.Add, ast.Mult, ast.Div, ast.FloorDiv)


Feature = tuple[NDArray[np.int16], NDArray[np.float64]]
"""Level of every row, and the levels' values scaled to [0, 1]."""


def derived_features(feasible: FeasibleSet, launched: SizedLaunch | None = None) -> list[Feature]:
    """The varying quantities of the constraints and of the launch; of duplicates only one."""
    found = _constraint_features(feasible)
    known = {codes.tobytes() for codes, _ in found}
    for sizes in launched.sizes if launched is not None else ():
        if np.ptp(sizes) > 0:
            feature = _levels(sizes)
            if feature[0].tobytes() not in known:
                known.add(feature[0].tobytes())
                found.append(feature)
    return found


def _constraint_features(feasible: FeasibleSet) -> list[Feature]:
    space = feasible.space
    scope = {
        p.name: parameter_values(space, column)[feasible.codes[:, column]]
        for column, p in enumerate(space.parameters)
        if len(p.values) > 1 and not any(isinstance(v, str) for v in p.values)
    }
    fixed = {p.name: p.values[0] for p in space.parameters if len(p.values) == 1}
    found: dict[str, ast.BinOp] = {}
    for constraint in space.constraints:
        for part in _parts(constraint.expression.tree, set(scope)):
            if {n.id for n in ast.walk(part) if isinstance(n, ast.Name)} <= scope.keys() | fixed.keys():
                found.setdefault(ast.dump(part), part)
    features = []
    for part in found.values():
        values = evaluate(part, {**fixed, **scope})
        if values is not None and np.ptp(values) > 0:
            features.append(_levels(np.log2(np.abs(values) + 1.0)))
    return features


def _parts(node: ast.AST, varying: set[str]) -> Iterator[ast.BinOp]:
    """The largest sums and products with at least two varying parameters."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        if len({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & varying) >= 2:
            yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _parts(child, varying)


def _levels(values: NDArray[np.float64]) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    scaled = (values - values.min()) / np.ptp(values)
    levels, codes = np.unique(np.round(scaled, 6), return_inverse=True)
    if levels.size > LEVELS:
        levels, codes = np.unique(np.round(scaled * (LEVELS - 1)) / (LEVELS - 1), return_inverse=True)
    return codes.astype(np.int16), levels
