"""The feasible set: all configurations that the constraints allow.

The set grows parameter by parameter and is filtered as soon as all names of a constraint are bound, so that
the Cartesian product is never built.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.expressions import Value
from warpsmith.domain.templates.space import Configuration, Constraint, ParameterValue, Space
from warpsmith.search.spaces.vectorised_constraints import holds

Codes = NDArray[np.int16]
Bools = NDArray[np.bool_]

LIMIT = 1_000_000
FRONTIER_LIMIT = 8_000_000
SAMPLE = 200_000
ENUMERATE_S = 20.0
"""Seconds after which a part of the set is drawn instead. Sets near the limits take a few. The default budget
is a minute: a search of a part that begins within it finds more than one of the whole that does not."""
PIECE = 8192
"""Number of rows between two looks at the clock. A constraint evaluated row by row takes half a second for
them."""
FIRST_PIECE = 64
"""Number of rows of a sample that are filtered at first; more as long as they take less than `PIECE_S`."""
PIECE_S = 0.1


class _Late(Exception):
    """The time for enumerating has passed."""


@dataclass
class FeasibleSet:
    """Configurations as rows of value indices."""

    space: Space
    codes: Codes
    """[n, parameters]: index of the value of each parameter."""
    allowed: Bools
    """[n, scopes]: workloads on which each configuration may run."""
    exact: bool = True
    """False if the set was too large, or its constraints too slow, and `codes` is a random sample of it."""
    _keys: NDArray[np.bytes_] | None = field(default=None, repr=False)
    _order: NDArray[np.intp] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    @property
    def count(self) -> int:
        """Number of configurations; a lower bound if `exact` is False."""
        return len(self)

    @cached_property
    def sole_workloads(self) -> NDArray[np.intp] | None:
        """[n]: the workload on which each configuration may run, if each has only one and they differ."""
        if self.allowed.shape[1] < 2 or not len(self) or (self.allowed.sum(axis=1) != 1).any():
            return None
        found = self.allowed.argmax(axis=1)
        return found if np.ptp(found) else None

    def configuration(self, index: int) -> Configuration:
        """The configuration of a row."""
        row = self.codes[index]
        return {p.name: p.values[code] for p, code in zip(self.space.parameters, row, strict=True)}

    def index(self, configuration: Mapping[str, ParameterValue]) -> int | None:
        """The row of a configuration; None if it is not in the set."""
        codes = []
        for p in self.space.parameters:
            value = configuration.get(p.name)
            found = [
                i
                for i, v in enumerate(p.values)
                if v == value and isinstance(v, bool) == isinstance(value, bool)
            ]
            if not found:
                return None
            codes.append(found[0])
        if not codes:
            return 0 if len(self) else None
        if self._keys is None or self._order is None:
            keys = _keys(self.codes)
            self._order = np.argsort(keys)
            self._keys = keys[self._order]
        key = _keys(np.array([codes], dtype=np.int16))
        at = int(np.searchsorted(self._keys, key)[0])
        if at < self._keys.size and self._keys[at] == key[0]:
            return int(self._order[at])
        return None

    def neighbours(self, index: int) -> NDArray[np.intp]:
        """Rows that differ from a row in exactly one parameter."""
        return np.flatnonzero((self.codes != self.codes[index]).sum(axis=1) == 1)


def enumerate_space(
    space: Space,
    scopes: Sequence[Mapping[str, Value]],
    limit: int = LIMIT,
    seed: int = 0,
    seconds: float = ENUMERATE_S,
) -> FeasibleSet:
    """All configurations that at least one scope allows, or a random sample of them.

    Args:
        scopes: one per workload: its dimensions and the device's limits.
        limit: number of configurations above which a sample is drawn instead.
        seed: seed of that sample.
        seconds: time after which a sample is drawn instead, for half as long at most. It may then be empty,
            though the set is not.

    Raises:
        ExpressionError: a constraint names something unknown.
    """
    until = time.monotonic() + seconds if space.parameters else math.inf
    try:
        found = _enumerated(space, scopes, limit, until)
    except _Late:
        found = None
    if found is None:
        return _sampled(space, scopes, seed, time.monotonic() + seconds / 2)
    return found


def _enumerated(
    space: Space, scopes: Sequence[Mapping[str, Value]], limit: int, until: float
) -> FeasibleSet | None:
    """The whole set; None if it is too large.

    Raises:
        _Late: `until` passed before.
    """
    order = _binding_order(space)
    codes = np.zeros((1, 0), np.int16)
    allowed = np.ones((1, max(1, len(scopes))), bool)
    placed: list[int] = []
    pending = list(space.constraints)
    codes, allowed, pending = _filter(space, scopes, codes, allowed, placed, pending, until)
    for column in order:
        values = len(space.parameters[column].values)
        if codes.shape[0] * values > FRONTIER_LIMIT:
            return None
        _look_at_the_clock(until)
        codes = np.concatenate(
            [
                np.repeat(codes, values, axis=0),
                np.tile(np.arange(values, dtype=np.int16), codes.shape[0])[:, None],
            ],
            axis=1,
        )
        allowed = np.repeat(allowed, values, axis=0)
        placed.append(column)
        codes, allowed, pending = _filter(space, scopes, codes, allowed, placed, pending, until)
    if codes.shape[0] > limit:
        return None
    back = np.argsort(placed) if placed else np.zeros(0, np.intp)
    codes = codes[:, back]
    # Rows follow the order of the declared parameters, not the order of binding.
    rows = np.lexsort(codes.T[::-1]) if codes.shape[1] else np.arange(codes.shape[0])
    return FeasibleSet(space, np.ascontiguousarray(codes[rows]), allowed[rows])


def _look_at_the_clock(until: float) -> None:
    if time.monotonic() > until:
        raise _Late


def _binding_order(space: Space) -> list[int]:
    """Order of parameters in which those that complete a constraint soonest come first."""
    names = [p.name for p in space.parameters]
    needs = [set(c.expression.names) & set(names) for c in space.constraints]
    sizes = {p.name: len(p.values) for p in space.parameters}
    bound: list[str] = []
    while len(bound) < len(names):
        left = [n - set(bound) for n in needs if n - set(bound)]
        if not left:
            bound += [n for n in names if n not in bound]
            break
        nearest = min(left, key=lambda missing: (np.prod([sizes[m] for m in missing]), sorted(missing)))
        bound += sorted(nearest, key=names.index)
    return [names.index(n) for n in bound]


def _filter(
    space: Space,
    scopes: Sequence[Mapping[str, Value]],
    codes: Codes,
    allowed: Bools,
    placed: Sequence[int],
    pending: list[Constraint],
    until: float,
) -> tuple[Codes, Bools, list[Constraint]]:
    """The rows that every constraint allows whose names are bound, and the other constraints.

    Raises:
        _Late: `until` passed before.
    """
    names = {p.name for p in space.parameters}
    bound = {space.parameters[c].name for c in placed}
    ready = [c for c in pending if set(c.expression.names) & names <= bound]
    for constraint in ready:
        arrays = {
            space.parameters[column].name: parameter_values(space, column)[codes[:, k]]
            for k, column in enumerate(placed)
            if space.parameters[column].name in constraint.expression.names
        }
        # One without names of a scope has the same answer in all of them.
        own = set(constraint.expression.names) <= names
        columns = [
            _holds(constraint, {**scope, **arrays}, codes.shape[0], until)
            for scope in ([] if own else scopes) or ({},)
        ]
        allowed = allowed & np.stack(columns, axis=1)
        keep = allowed.any(axis=1)
        codes, allowed = codes[keep], allowed[keep]
    return codes, allowed, [c for c in pending if c not in ready]


def _holds(constraint: Constraint, scope: Mapping[str, Any], length: int, until: float) -> Bools:
    """[length]: whether rows meet a constraint, piece by piece."""
    found = np.zeros(length, bool)
    for start in range(0, max(1, length), PIECE):  # no rows: names are looked at all the same
        _look_at_the_clock(until)
        piece = slice(start, start + PIECE)
        values = {n: v[piece] if isinstance(v, np.ndarray) else v for n, v in scope.items()}
        found[piece] = holds(constraint.expression, values, found[piece].size)
    return found


def parameter_values(space: Space, column: int) -> NDArray[np.generic]:
    """The values of one parameter, as an array to be indexed by codes."""
    values = space.parameters[column].values
    if any(isinstance(v, str) for v in values):
        return np.array([str(v) for v in values])
    return np.array(values)


def _sampled(space: Space, scopes: Sequence[Mapping[str, Value]], seed: int, until: float) -> FeasibleSet:
    """A random sample of a set that cannot be held or takes too long: uniform draws, of which the allowed
    ones are kept."""
    rng = np.random.default_rng(seed)
    found = np.zeros((0, len(space.parameters)), np.int16)
    masks = np.zeros((0, max(1, len(scopes))), bool)
    for _ in range(50):
        draw = np.stack(
            [rng.integers(0, len(p.values), SAMPLE, dtype=np.int16) for p in space.parameters], axis=1
        )
        codes, ok = _allowed_of(space, scopes, draw, until)
        found, first = np.unique(np.concatenate([found, codes]), axis=0, return_index=True)
        masks = np.concatenate([masks, ok])[first]
        if found.shape[0] >= SAMPLE or time.monotonic() > until:
            break
    return FeasibleSet(space, found[: 2 * SAMPLE], masks[: 2 * SAMPLE], exact=False)


def _allowed_of(
    space: Space, scopes: Sequence[Mapping[str, Value]], draw: Codes, until: float
) -> tuple[Codes, Bools]:
    """The allowed rows of a draw; of its beginning alone, if `until` passes meanwhile."""
    codes = [draw[:0]]
    masks = [np.zeros((0, max(1, len(scopes))), bool)]
    every, start, rows = list(range(len(space.parameters))), 0, FIRST_PIECE
    while start < draw.shape[0] and (start == 0 or time.monotonic() < until):
        began = time.monotonic()
        piece = draw[start : start + rows]
        ok = np.ones((piece.shape[0], masks[0].shape[1]), bool)
        # A piece that was begun is finished, so that something is found however slow a constraint is.
        kept, ok, _ = _filter(space, scopes, piece, ok, every, list(space.constraints), math.inf)
        codes.append(kept)
        masks.append(ok)
        start += piece.shape[0]
        if time.monotonic() - began < PIECE_S:
            rows *= 2
    return np.concatenate(codes), np.concatenate(masks)


def _keys(codes: Codes) -> NDArray[np.bytes_]:
    shifted = np.ascontiguousarray((codes + 1).astype(">i2"))
    return shifted.view(f"S{2 * codes.shape[1]}").reshape(-1)
