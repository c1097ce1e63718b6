"""References that are computed beside a timing: they stand still meanwhile, and end as if they had not."""

import random
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from testbed.deadlines import stretched
from tests.sandbox.kernels import plan
from warpsmith.errors import LeaseLost
from warpsmith.processes.stop_children import recall, resume
from warpsmith.sandbox import ReferenceRunner
from warpsmith.sandbox.hosts.kept_children import KeptChildren

SLOW = """
import time
def reference(inputs, dims):
    for _ in range(20):
        time.sleep(0.01)
    return {'y': inputs['x'] * 2}
"""
CASE = [(plan(100), {"n": 100})]


def states(of: int) -> set[str]:
    """How the children of this process's fork servers are, as the system says: T is stopped."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != of:
            try:
                name, _, rest = (entry / "stat").read_text().partition(") ")
            except OSError:
                continue
            if name.endswith("(reference_child"):
                found.add(rest[0])
    return found


def test_a_halted_computation_stands_still_and_goes_on_where_it_was() -> None:
    runner = ReferenceRunner()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(runner.numpy_many, SLOW, "reference", CASE)
        time.sleep(0.1)
        runner.halt()
        try:
            deadline = time.monotonic() + stretched(5)
            while "T" not in states(0) and not done.done() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.5)
            assert not done.done(), "it needs a fifth of a second, and has none"
        finally:
            runner.go_on()
        (found,) = done.result(stretched(30))
    assert isinstance(found, Mapping)
    assert np.any(found["y"])


def test_nothing_begins_during_a_halt() -> None:
    runner = ReferenceRunner()
    runner.halt()
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(runner.numpy_many, SLOW, "reference", CASE)
        done.add_done_callback(lambda _: ended.set())
        assert not ended.wait(0.6)
        runner.go_on()
        (found,) = done.result(stretched(30))
    assert isinstance(found, Mapping)


def test_who_waits_for_the_end_of_a_halt_hears_that_the_work_was_recalled() -> None:
    runner = ReferenceRunner()
    runner.halt()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(runner.numpy_many, SLOW, "reference", CASE)
        time.sleep(0.1)
        recall()
        try:
            assert isinstance(done.exception(stretched(20)), LeaseLost)
        finally:
            runner.go_on()
            resume()


@pytest.mark.parametrize("seed", range(2))
def test_halts_at_any_moment_lose_no_answer(seed: int) -> None:
    """Children that start, answer, are kept and taken again while another thread halts and lets them go."""
    lots = random.Random(seed)
    runner = ReferenceRunner(timeout_s=60, children=2, kept=KeptChildren(0.05))
    quick = "def reference(inputs, dims):\n    return {'y': inputs['x'] * 2}\n"
    over = threading.Event()

    def halts() -> None:
        while not over.wait(lots.random() * 0.01):
            runner.halt()
            time.sleep(lots.random() * 0.005)
            runner.go_on()

    halting = threading.Thread(target=halts, daemon=True)
    halting.start()
    with ThreadPoolExecutor(2) as pool:
        try:
            asked = [pool.submit(runner.numpy_many, quick, "reference", CASE * 3) for _ in range(40)]
            for done in asked:
                assert all(isinstance(found, Mapping) for found in done.result(stretched(30)))
        finally:
            over.set()
            halting.join(stretched(10))
            runner.go_on()
            runner.kept.end_all()
