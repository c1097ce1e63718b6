"""A kernel and its usual spelling read and write the same elements, in every thread of every small launch.

Both are interpreted, for all sizes up to a limit: less than a block, a block, and more, so that every guard
and every end of a loop is met. The rules look at texts; the interpreter at what threads do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.kernels.equal_spellings import plain_job, spelling, spelt_job
from testbed.kernels.kernel_kinds import Kind
from testbed.kernels.kernel_styles import BACKENDS
from testbed.kernels.plain_kernels import BASES
from testbed.repetitions import examples
from tests.kernel_interpreter import Access, Launch, Triple, run
from tests.kernel_numbers import Number, UndefinedError
from warpsmith.domain.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.job import Job
from warpsmith.rewrite.form import usual_spelling
from warpsmith.rewrite.form.expressions import Edits, Spelling
from warpsmith.rewrite.form.usual_spelling import usually_spelt
from warpsmith.rewrite.source.syntax_tree import Edit, find
from warpsmith.rewrite.templater import first_draft

SPELLINGS = 25
"""Drawn spellings of each kernel and back end at night."""
_SMALL = {
    "rms norm": (("r",), ("4",)),
    "softmax": (("r",), ("4",)),
    "matrix product": (("ceil_div(n, 4)", "ceil_div(n, 2)"), ("4", "2")),
    "elements of a plane": (("ceil_div(w, 4)", "ceil_div(h, 2)"), ("4", "2")),
    "stencil": (("ceil_div(w, 4)", "ceil_div(h, 2)"), ("4", "2")),
    "grid stride": (("2",), ("2",)),
    "sums of rows": (("ceil_div(r, 4)",), ("4",)),
    "gather": (("r",), ("4",)),
}
"""Grids and blocks with which a few elements are several blocks, and a row is several rounds."""
_MOST = {"rms norm": 9, "softmax": 9, "matrix product": 5, "grid stride": 11, "gather": 9}
"""Largest `n`."""
SMALL_BASES = tuple(replace(b, grid=_SMALL[b.name][0], block=_SMALL[b.name][1]) for b in BASES)
BY_NAME = {b.name: b for b in SMALL_BASES}


def sizes(base: Kind) -> Iterator[dict[str, int]]:
    """All small sizes of a kernel's dimensions, from 1 on."""
    limits = {"r": 5 if base.name == "sums of rows" else 2, "h": 4, "w": 5, "n": _MOST.get(base.name, 3)}
    names = list(base.workloads[0])
    for values in product(*(range(1, limits[name] + 1) for name in names)):
        yield dict(zip(names, values, strict=True))


def launch_of(job: Job, scope: Mapping[str, int]) -> Launch:
    """A launch over values of both signs, 0 among them; indices name different rows."""
    grid, block = (
        tuple(e.integer(scope) for e in part) for part in (job.kernel.launch.grid, job.kernel.launch.block)
    )
    made = Launch(_triple(grid), _triple(block), {}, {}, {})
    scalars: dict[str, Number] = {}
    pointers: dict[str, Dtype] = {}
    for a in job.kernel.arguments:
        assert a.dtype is not None
        if a.role is Role.SCALAR:
            assert a.value is not None
            scalars[a.name] = Number(a.dtype, a.value.integer(scope))
            continue
        pointers[a.name] = a.dtype
        count = prod(e.integer(scope) for e in a.shape)
        draw = _real if a.dtype.is_float else _row
        made.memory[a.name] = {} if a.role is Role.OUTPUT else {n: draw(a.name, n) for n in range(count)}
    return replace(made, scalars=scalars, pointers=pointers)


def _triple(size: tuple[int, ...]) -> Triple:
    x, y, z = (*size, 1, 1)[:3]
    return x, y, z


def _real(name: str, n: int) -> float:
    return (n * 7919 + len(name) + ord(name[0])) % 17 / 4 - 2


def _row(name: str, n: int) -> int:
    return (n * 37 + 5) % 128


@dataclass(frozen=True)
class Outcome:
    """What a launch does."""

    accesses: frozenset[Access] = frozenset()
    memory: Mapping[str, Mapping[int, int | float]] = field(default_factory=dict)
    """What it leaves in buffers."""
    undefined: str = ""
    """Why the language does not say; empty if it does."""


def outcome(job: Job, source: str, scope: Mapping[str, int]) -> Outcome:
    """The accesses of a launch, and the memory that it leaves."""
    launch = launch_of(job, scope)
    try:
        run(source, launch)
    except UndefinedError as error:
        return Outcome(undefined=str(error))
    return Outcome(frozenset(launch.accesses), launch.memory)


def difference(base: Kind, job: Job) -> str:
    """What a spelling of a kernel and its usual spelling do otherwise at some size; empty if nothing."""
    usual = usually_spelt(first_draft(job)).kernel.text
    for scope in sizes(base):
        written, made = (outcome(job, text, scope) for text in (job.kernel.text, usual))
        if written != made:
            return f"{scope}: {_first(written, made)}\n{job.kernel.text}\nusually:\n{usual}"
    return ""


def _first(written: Outcome, made: Outcome) -> str:
    """The first of what differs."""
    if written.undefined or made.undefined:
        return f"undefined: as written {written.undefined!r}, as usual {made.undefined!r}"
    lost, new = (sorted(a.accesses - b.accesses)[:2] for a, b in ((written, made), (made, written)))
    return f"only as written: {lost}; only as usual: {new}" if lost or new else "other values are written"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("base", SMALL_BASES, ids=lambda base: base.name)
@examples(SPELLINGS, least=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_usual_spellings_make_the_same_accesses(base: Kind, backend: str, seed: int) -> None:
    assert difference(base, spelt_job(base, backend, spelling(base, backend, Random(seed)))) == ""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("base", SMALL_BASES, ids=lambda base: base.name)
def test_what_is_interpreted_computes_the_reference(base: Kind, backend: str) -> None:
    """What the oracle itself rests on: the interpreter reads kernels as compilers do."""
    job = plain_job(base, backend)
    names: dict[str, Callable[..., dict[str, np.ndarray]]] = {}
    exec(base.reference, names)
    for scope in sizes(base):
        launch = launch_of(job, scope)
        shapes = {a.name: tuple(e.integer(scope) for e in a.shape) for a in job.kernel.arguments if a.shape}
        arrays = {n: _array(launch.memory[n], shape) for n, shape in shapes.items()}
        expected = names["reference"](arrays, scope)
        run(job.kernel.text, launch)
        for name, array in expected.items():
            made = _array(launch.memory[name], shapes[name])
            np.testing.assert_allclose(made, array, rtol=1e-6, atol=1e-9, err_msg=f"{scope}")


def _array(elements: Mapping[int, int | float], shape: tuple[int, ...]) -> "np.ndarray":
    assert all(0 <= n < prod(shape) for n in elements), "outside of the buffer"
    return np.array([elements.get(n, 0) for n in range(prod(shape))]).reshape(shape)


def one_more(spelling: Spelling) -> Iterator[Edits]:
    """Wrong: `i < n` becomes `i <= n`."""
    yield from _replaced(spelling, "<", "<=")


def one_further(spelling: Spelling) -> Iterator[Edits]:
    """Wrong: every index is one more."""
    for node in find(spelling.facts.source.body, "subscript_argument_list"):
        at = node.end_byte - 1
        yield (Edit(at, at, " + 1"),)


def swapped_guards(spelling: Spelling) -> Iterator[Edits]:
    """Wrong: `i < h && j < w` becomes `i < w && j < h`."""
    source = spelling.facts.source
    for node in find(source.body, "binary_expression"):
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        bounds = [None if s is None else s.child_by_field_name("right") for s in sides]
        first, second = bounds
        if source.of(node).count("&&") == 1 and first is not None and second is not None:
            texts = (source.of(second), source.of(first))
            yield tuple(
                Edit(b.start_byte, b.end_byte, x) for b, x in zip((first, second), texts, strict=True)
            )


def hasty_signs(spelling: Spelling) -> Iterator[Edits]:
    """Wrong: `(unsigned)e` becomes `e`, also where that is negative."""
    source = spelling.facts.source
    for node in find(source.body, "cast_expression"):
        value = node.child_by_field_name("value")
        if value is not None:
            yield (Edit(node.start_byte, node.end_byte, source.of(value)),)


def guards_left_out(spelling: Spelling) -> Iterator[Edits]:
    """Wrong: `if (i < r)` becomes `if (1)`."""
    source = spelling.facts.source
    for node in find(source.body, "if_statement"):
        asked = node.child_by_field_name("condition")
        if asked is not None and source.of(asked) != "(1)":
            yield (Edit(asked.start_byte, asked.end_byte, "(1)"),)


def earlier_barriers(spelling: Spelling) -> Iterator[Edits]:
    """Wrong: a barrier changes places with the statement before it."""
    source = spelling.facts.source
    for node in find(source.body, "expression_statement"):
        before = node.prev_named_sibling
        if before is not None and source.of(node) == "__syncthreads();" and "part" in source.of(before):
            yield (
                Edit(before.start_byte, before.end_byte, source.of(node)),
                Edit(node.start_byte, node.end_byte, source.of(before)),
            )


def _replaced(spelling: Spelling, sign: str, other: str) -> Iterator[Edits]:
    for node in find(spelling.facts.source.body, "binary_expression"):
        found = node.child_by_field_name("operator")
        if found is not None and spelling.facts.source.of(found) == sign:
            yield (Edit(found.start_byte, found.end_byte, other),)


WITHOUT_SIGN = "if ((unsigned)i < (unsigned)r && (unsigned)(i - 1) < (unsigned)r) {"


@pytest.mark.parametrize(
    ("wrong", "name", "change"),
    [
        (one_more, "sums of rows", None),
        (one_more, "grid stride", None),
        (one_further, "gather", None),
        (swapped_guards, "elements of a plane", None),
        (guards_left_out, "matrix product", None),
        (hasty_signs, "sums of rows", ("if (i < r) {", WITHOUT_SIGN)),
        (earlier_barriers, "rms norm", None),
        (earlier_barriers, "softmax", None),
    ],
)
def test_a_wrong_habit_is_seen(
    wrong: Callable[[Spelling], Iterator[Edits]],
    name: str,
    change: tuple[str, str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = BY_NAME[name]
    source = plain_job(base, "cuda").kernel.text
    assert change is None or change[0] in source
    job = spelt_job(base, "cuda", source.replace(*change) if change else source)
    assert difference(base, job) == ""
    habits = _Once(wrong)
    monkeypatch.setattr(usual_spelling, "HABITS", (*usual_spelling.HABITS, habits))
    assert difference(base, job) != ""
    assert habits.was_used


class _Once:
    """A habit that changes a kernel once."""

    def __init__(self, habit: Callable[[Spelling], Iterator[Edits]]) -> None:
        self._habit = habit
        self.was_used = False

    def __call__(self, spelling: Spelling) -> Iterator[Edits]:
        made = [] if self.was_used else list(self._habit(spelling))
        self.was_used |= bool(made)
        yield from made


@pytest.mark.parametrize(
    ("written", "other"),
    [
        # Of an unsigned and a signed number, -1 is the largest.
        ("if (threadIdx.x > i - 1) y[i] = 1;", "if ((int)threadIdx.x > i - 1) y[i] = 1;"),
        # What stands behind `&&` is not read where the first is false.
        ("if (i < n && x[i] < 9) y[0] = 1;", "if (x[i] < 9 && i < n) y[0] = 1;"),
        # A barrier between two reads is one that others write before.
        ("y[i] = x[i]; __syncthreads(); y[i] = x[i];", "y[i] = x[i]; __syncthreads(); y[i] = 1;"),
        # An unsigned sum wraps.
        ("y[i - 1u] = 1;", "y[i - 1] = 1;"),
        # Another thread does it.
        ("if (i == 0) y[n] = 1;", "if (i == 1) y[n] = 1;"),
    ],
)
def test_outcomes_differ(written: str, other: str) -> None:
    job = plain_job(BY_NAME["gather"], "cuda")
    head = job.kernel.text[: job.kernel.text.index("{")]
    texts = [f"{head}{{ int i = threadIdx.x; {body} }}" for body in (written, other)]
    first, second = (outcome(job, text, {"n": 3, "r": 1}) for text in texts)
    assert first != second
    assert first == outcome(job, texts[0], {"n": 3, "r": 1})
    assert not first.undefined and not second.undefined


def test_a_sum_that_an_int_cannot_hold_is_undefined() -> None:
    job = plain_job(BY_NAME["gather"], "cuda")
    head = job.kernel.text[: job.kernel.text.index("{")]
    bodies = ("int i = 2147483647; y[i + 1] = 1;", "unsigned i = 4294967295; y[i + 1] = 1;")
    made = [outcome(job, f"{head}{{ {body} }}", {"n": 1, "r": 1}) for body in bodies]
    assert made[0].undefined == "2147483648 is no int32"
    assert {a.offset for a in made[1].accesses} == {0}
