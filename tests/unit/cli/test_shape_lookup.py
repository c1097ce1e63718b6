"""Shapes that no workload names: what may leave the baseline, and the module of a bundle that says so."""

import random
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_report import entry, result
from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.domain.templates.outcome import CheckedShape
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import ExpressionError
from warpsmith.http_models import JobResult
from warpsmith.report.bundle import write_bundle
from warpsmith.report.dispatch_module import python_text
from warpsmith.report.shape_lookup import Lookup
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.winners.shape_boxes import LEAST_BOX_GAIN, NOISES, least_speedup

SMALL: Configuration = {"BLOCK": 32, "PER": 1}
LARGE: Configuration = {"BLOCK": 256, "PER": 4}


def passed(n: int, configuration: Configuration) -> CheckedShape:
    """A shape between workloads on which a configuration was right and faster."""
    return CheckedShape(dimensions={"n": n}, candidate="c1", configuration=configuration, speedup=1.3)


def tuned(**changes: Any) -> JobResult:
    """Faster on sizes from 1024 to 16384, except at 65536 and one that is odd."""
    sizes = {"n=1024": SMALL, "n=4096": LARGE, "n=16384": LARGE, "n=65536": None, "n=1001": None}
    job = scale_job(
        workloads=[{"dimensions": {"n": int(key[2:])}} for key in sizes],
        constraints=[{"expression": "BLOCK * PER * 2 <= n"}, {"expression": "n % PER == 0 or PER == 1"}],
    )
    entries = []
    for key, configuration in sizes.items():
        made = entry(key, configuration, f"// {configuration}" if configuration else None)
        seen = dict.fromkeys(("n=1024", "n=4096", "n=16384"), 1.4 if configuration == LARGE else 1.2)
        seen |= {"n=65536": 0.9, "n=1001": 0.7}
        known = seen if configuration else {}
        entries.append(made.model_copy(update={"launch": job.kernel.launch, "speedups": known}))
    base = result()
    (candidate,) = base.candidates
    fields = {
        "job": job,
        "dispatch": tuple(entries),
        "limits": DEVICE.limits,
        "between": (passed(2048, LARGE), passed(8192, LARGE)),
        "candidates": (candidate.model_copy(update={"space": job.space}),),
    }
    return base.model_copy(update=fields | changes)


def test_the_table_itself_is_kept() -> None:
    lookup = Lookup(tuned())
    got = {n: lookup.pick({"n": n}) for n in (1024, 4096, 16384, 65536, 1001)}
    names = {n: None if s is None else lookup.servers[s].configuration for n, s in got.items()}
    assert names == {1024: SMALL, 4096: LARGE, 16384: LARGE, 65536: None, 1001: None}


def test_between_workloads_the_better_neighbour_serves_where_its_constraints_hold() -> None:
    lookup = Lookup(tuned())
    number = lookup.pick({"n": 2048})
    assert number is not None
    assert lookup.servers[number].configuration == LARGE
    assert lookup.pick({"n": 32768}) is None
    strict = tuned()
    (candidate,) = strict.candidates
    space = candidate.space.model_copy(
        update={"constraints": scale_job(constraints=[{"expression": "n != 2048"}]).constraints}
    )
    strict = strict.model_copy(update={"candidates": (candidate.model_copy(update={"space": space}),)})
    assert Lookup(strict).pick({"n": 2048}) is None
    assert Lookup(strict).pick({"n": 2176}) is not None


def test_a_box_without_a_passed_shape_inside_keeps_the_baseline() -> None:
    assert Lookup(tuned()).pick({"n": 2048}) is not None
    assert Lookup(tuned(between=())).pick({"n": 2048}) is None
    assert Lookup(tuned(between=())).pick({"n": 4096}) is not None
    # What another kernel passed, or what lies in another box, says nothing.
    assert Lookup(tuned(between=(passed(2048, SMALL),))).pick({"n": 2048}) is None
    assert Lookup(tuned(between=(passed(8192, LARGE),))).pick({"n": 2048}) is None
    assert Lookup(tuned(between=(passed(8192, LARGE),))).pick({"n": 8192}) is not None


def test_a_noisy_device_asks_for_more() -> None:
    assert least_speedup(0.001) == 1 + LEAST_BOX_GAIN
    assert least_speedup(0.1) == 1 + NOISES * 0.1
    assert Lookup(tuned()).pick({"n": 2048}) is not None
    noisy = tuple(c.model_copy(update={"aa_width": 0.25}) for c in tuned().comparisons)
    assert Lookup(tuned(comparisons=noisy)).pick({"n": 2048}) is None


def test_a_launch_that_the_device_cannot_take_keeps_the_baseline() -> None:
    narrow = DEVICE.limits.model_copy(update={"max_threads_per_block": 128})
    assert Lookup(tuned(limits=narrow)).pick({"n": 2048}) is None


def test_older_results_have_no_look_up(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tune the job again"):
        Lookup(tuned(limits=None))
    assert not [p for p in write_bundle(tuned(limits=None), (), tmp_path) if p.name == "dispatch.py"]


def test_the_module_of_a_bundle_picks_the_same_and_computes_the_launch(tmp_path: Path) -> None:
    shown = tuned()
    written = write_bundle(shown, (), tmp_path)
    assert written[-1].name == "dispatch.py"
    pick = runpy.run_path(str(written[-1]))["pick"]
    lookup = Lookup(shown)
    rng = random.Random(0)
    sizes = [rng.randint(1, 70_000) for _ in range(300)] + [128 * rng.randint(1, 600) for _ in range(300)]
    tuned_ones = 0
    for n in [1001, 1024, 4096, 16384, 65536, *sizes]:
        number = lookup.pick({"n": n})
        launch = pick(n=n)
        if number is None:
            assert launch.file is None
            assert launch.grid == (-(-n // 64),)
            assert launch.block == (64,)
            continue
        tuned_ones += 1
        chosen = lookup.servers[number].configuration
        block, per = int(chosen["BLOCK"]), int(chosen["PER"])
        assert (tmp_path / launch.file).read_text().endswith(f"\n\n// {chosen}")
        assert (launch.entry, launch.block, launch.shared_bytes) == ("scale", (block,), 0)
        assert launch.grid == (-(-n // (block * per)),)
    assert tuned_ones > 50


def test_the_module_computes_local_memory_for_other_shapes(tmp_path: Path) -> None:
    shown = tuned()
    local = Argument(name="s", dtype=Dtype.FLOAT64, role=Role.LOCAL, shape=(Expression("BLOCK + 2"), 3))
    entries = tuple(e.model_copy(update={"local_arguments": (local,)}) for e in shown.dispatch)
    shown = shown.model_copy(update={"dispatch": entries})
    pick = runpy.run_path(str(write_bundle(shown, (), tmp_path)[-1]))["pick"]
    assert pick(n=2048).local_bytes == ((256 + 2) * 3 * 8,)
    narrow = DEVICE.limits.model_copy(update={"max_shared_per_block": 6000})
    small = shown.model_copy(update={"limits": narrow})
    assert Lookup(small).pick({"n": 2048}) is None
    pick = runpy.run_path(str(write_bundle(small, (), tmp_path / "small")[-1]))["pick"]
    assert pick(n=2048).file is None


def test_the_module_says_which_dimensions_it_takes(tmp_path: Path) -> None:
    pick = runpy.run_path(str(write_bundle(tuned(), (), tmp_path)[-1]))["pick"]
    with pytest.raises(TypeError, match="pick takes n; got m"):
        pick(m=4)


@pytest.mark.parametrize(
    "text",
    [
        "ceil_div(n, BLOCK * 2) + max(n, 3)",
        "n // 2 if n % 2 == 0 and not BLOCK > n else round_up(n, device.warp_size)",
        "next_pow2(n) ** 2 - gcd(n, 12) + abs(-n) + int(sqrt(n))",
        "1 if BLOCK in (64, 128) or n <= 5 < 7 else 0",
    ],
)
def test_expressions_mean_the_same_in_the_module(text: str, tmp_path: Path) -> None:
    expression = Expression(text)
    names = {"BLOCK": 64, "device.warp_size": 32}
    module = runpy.run_path(str(write_bundle(tuned(), (), tmp_path)[-1]))
    for n in (1, 2, 5, 64, 1000):
        try:
            want = expression.evaluate({"n": n, **names})
        except ExpressionError:
            continue
        assert eval(python_text(expression, names), module | {"d": {"n": n}}) == want
