"""Compiling with the fleet's help: real cubins from nodes without a GPU, and nothing that depends on them."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from db.engine import Database
from db.message_names import COMPILE, COMPILE_PREFIX, compile_queue
from db.repositories.remote_compilations import CompilationRepository, CompilationRequest
from db.repositories.workers import WorkerRepository
from db.tables import CompilationRow
from db.views.metrics import samples
from testbed.deadlines import HANGS_S, comes_true
from tests.worker.test_execute import SilentNotifier
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.state import CompilationState
from warpsmith.domain.templates.outcome import CompileFacts, Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import Unavailable
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE
from worker import compile_node
from worker.device import fleet_compiler
from worker.device.compile_cache import artifact_key
from worker.device.fleet_compiler import FleetCompiler
from worker.device.process_context import Context
from worker.supervision.pool_plans import PoolPlan, compilers_missing, plan_pools

CUDA = DEVICE.model_copy(update={"backend": Backend.CUDA, "architecture": "sm_90", "uid": "GPU-1"})
QUEUE = compile_queue(CUDA)
SOURCE = 'extern "C" __global__ void scale(float* y) { y[threadIdx.x] *= FACTOR; }'


def kernel(factor: int, source: str = SOURCE) -> ConfiguredKernel:
    launch = {"block": [32], "grid": [1]}
    parameters = [{"name": "y", "role": "output", "dtype": "float32", "shape": [32]}]
    fields = {
        "backend": "cuda",
        "source": source,
        "entry": "scale",
        "launch": launch,
        "arguments": parameters,
    }
    return ConfiguredKernel(
        kernel=Kernel.model_validate(fields | {"arguments": parameters}),
        defines={"FACTOR": str(factor)},
        configuration={"FACTOR": factor},
    )


class Here:
    """This machine's compilers: each kernel waits until it is let go."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.open: list[tuple[int, Future[Compiled | Rejected]]] = []

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        factor = int(kernel.configuration["FACTOR"])
        self.asked.append(factor)
        future: Future[Compiled | Rejected] = Future()
        self.open.append((factor, future))
        return future

    def heard(self, count: int) -> bool:
        """Whether as many were asked for."""
        return len(self.asked) >= count

    def let_go(self) -> None:
        """End the oldest."""
        factor, future = self.open.pop(0)
        future.set_result(Compiled(f"here {factor}".encode(), "scale", CompileFacts(), "", ()))


def binaries(results: "Iterable[Future[Compiled | Rejected]]") -> list[bytes]:
    """Those of the kernels that compiled."""
    made = [result.result(HANGS_S) for result in results]
    return [m.binary for m in made if isinstance(m, Compiled)]


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    assert comes_true(condition, seconds, 0.01), "waited in vain"


Fleet = Callable[..., FleetCompiler]


@pytest.fixture
def fleet(database: Database) -> Iterator[Fleet]:
    """Makes fleet compilers, and closes them before the database."""
    made = []

    def make(
        here: Any, width: int = 1, notified: list[str] | None = None, notify: Any = None
    ) -> FleetCompiler:
        def note(name: str, queue: str, subject: str) -> None:
            assert (name, queue) == (COMPILE, QUEUE)
            if notified is not None:
                notified.append(subject)

        made.append(FleetCompiler(here, width, CUDA, database, notify or note))
        return made[-1]

    yield make
    for compiler in made:
        compiler.close()


def register(database: Database, worker_id: str = "node", slots: int = 2) -> None:
    with database.write() as session:
        WorkerRepository(session).register(worker_id, "host", 1, "0", [QUEUE], [], {})
        WorkerRepository(session).offer_compilations(worker_id, slots)


@contextmanager
def node(database: Database, tmp_path: Path, worker_id: str = "node") -> Iterator[Context]:
    """A compile node of this process, with a real compiler, that works from the database."""
    register(database, worker_id)
    settings = Settings(_env_file=None, data_dir=tmp_path)
    context = Context(settings, database, SilentNotifier(), worker_id)
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            if not compile_node.run_next(context, QUEUE):
                ended.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield context
    finally:
        ended.set()
        thread.join()
        for compilers in compile_node._compilers.values():
            compilers.close()
        compile_node._compilers.clear()


def rows(database: Database) -> list[CompilationRow]:
    with database.read() as session:
        return list(session.query(CompilationRow).order_by(CompilationRow.key))


def test_without_compile_nodes_the_database_is_not_bothered(database: Database, fleet: Fleet) -> None:
    here = Here()
    compiler = fleet(here)
    for factor in (1, 2, 3):
        compiler.submit(kernel(factor), CUDA)
    assert here.asked == [1, 2, 3]
    assert compiler.slots() == 0
    assert rows(database) == []


def test_a_node_without_a_gpu_makes_the_cubins_that_are_waited_for(
    database: Database, fleet: Fleet, tmp_path: Path
) -> None:
    here = Here()
    with node(database, tmp_path):
        compiler = fleet(here)
        assert compiler.slots() == 2
        mine, *others = [compiler.submit(kernel(factor), CUDA) for factor in (1, 2, 3)]
        made = [o.result(HANGS_S) for o in others]
    assert here.asked == [1], "the first had a compiler here"
    assert not mine.done()
    assert compiler.helped == 2
    for compiled in made:
        assert isinstance(compiled, Compiled)
        assert compiled.facts.registers, "the compile facts come along"
        assert list(read_cubin(compiled.binary).entries) == ["scale"]
    assert made[0] != made[1]
    again = fleet(here := Here())
    assert again.submit(kernel(1), CUDA) is not again.submit(kernel(2), CUDA)
    until(lambda: again.helped == 1)
    assert here.asked == [1], "what the fleet has compiled is not compiled again"


def test_what_a_node_rejects_is_compiled_here(database: Database, fleet: Fleet, tmp_path: Path) -> None:
    here = Here()
    with node(database, tmp_path):
        compiler = fleet(here)
        compiler.submit(kernel(1), CUDA)
        bad = compiler.submit(kernel(2, SOURCE + "\n#error of this node"), CUDA)
        until(lambda: here.asked == [1, 2])
    here.let_go()
    here.let_go()
    assert isinstance(bad.result(HANGS_S), Compiled), "compilers differ: this one's word counts"
    assert compiler.helped == 0


def test_what_no_node_begins_is_taken_back(database: Database, fleet: Fleet) -> None:
    register(database)
    here, notified = Here(), list[str]()
    compiler = fleet(here, notified=notified)
    results = [compiler.submit(kernel(factor), CUDA) for factor in range(4)]
    until(lambda: len(notified) == 3)
    assert [r.state for r in rows(database)] == [CompilationState.WANTED] * 3
    for done in range(4):
        until(partial(here.heard, done + 1))
        assert len(here.open) == 1, "one at a time here"
        here.let_go()
    assert here.asked == [0, 1, 2, 3], "oldest first"
    assert binaries(results) == [f"here {n}".encode() for n in range(4)]
    until(lambda: rows(database) == [])


def take_all(database: Database) -> list[str]:
    with database.write() as session:
        keys = [row.key for row in session.query(CompilationRow)]
        return [key for key in keys if CompilationRepository(session).take(key, "node")]


def test_a_node_that_dies_is_not_waited_for(
    database: Database, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_compiler, "LATE_S", 0.5)
    register(database)
    here = Here()
    compiler = fleet(here)
    for factor in (1, 2):
        compiler.submit(kernel(factor), CUDA)
    until(lambda: take_all(database))
    began = time.monotonic()
    until(lambda: here.asked == [1, 2])
    assert time.monotonic() - began > 0.2, "a node gets some time"


@pytest.mark.parametrize("damage", ["bytes", "forgotten"])
def test_a_damaged_binary_is_never_used(database: Database, fleet: Fleet, damage: str) -> None:
    register(database)
    here = Here()
    compiler = fleet(here)
    results = [compiler.submit(kernel(factor), CUDA) for factor in (1, 2)]
    keys: list[str] = []

    def taken() -> bool:
        keys.extend(take_all(database))
        return keys != []

    until(taken)
    with database.write() as session:
        if damage == "bytes":
            CompilationRepository(session).finish(keys[0], "node", b"0000\n{}\nnot a cubin")
        else:
            session.query(CompilationRow).delete()
    until(lambda: here.asked == [1, 2])
    here.let_go()
    here.let_go()
    assert binaries(results) == [b"here 1", b"here 2"]


def test_only_who_took_it_brings_it(database: Database) -> None:
    key = artifact_key(kernel(1), CUDA)
    assert key is not None
    with database.write() as session:
        compilations = CompilationRepository(session)
        wanted = CompilationRequest(key, QUEUE, kernel(1), CUDA)
        assert compilations.want([wanted]) == [key]
        assert compilations.want([wanted]) == [], "asked for already"
        assert compilations.take(key, "one") == wanted
        assert compilations.take(key, "two") is None
        assert compilations.take_next(QUEUE, "two") is None
        assert compilations.withdraw([key]) == [], "somebody is at it"
        compilations.finish(key, "two", b"forged")
        assert compilations.states([key]) == {key: CompilationState.TAKEN}
        compilations.finish(key, "one", b"made")
        assert compilations.artifacts([key]) == {key: b"made"}
        compilations.prune(older_s=3600)
        assert compilations.states([key]) == {key: CompilationState.DONE}
        compilations.prune(older_s=-1)
        assert compilations.states([key]) == {}


def test_what_nodes_are_asked_for_is_counted(database: Database) -> None:
    with database.write() as session:
        compilations = CompilationRepository(session)
        compilations.want([CompilationRequest(name * 64, QUEUE, kernel(1), CUDA) for name in "abc"])
        assert compilations.take_next(QUEUE, "node") is not None
    with database.read() as session:
        found = {s.labels["state"]: s.value for s in samples(session) if s.name == "warpsmith_compilations"}
    assert found == {"wanted": 2, "taken": 1}


def test_a_database_that_goes_away_costs_the_help_only(
    database: Database, fleet: Fleet, tmp_path: Path
) -> None:
    register(database)
    here = Here()
    compiler = fleet(here)
    assert compiler.slots() == 2
    gone = Database(f"sqlite:///{tmp_path / 'no' / 'tables.db'}")
    compiler._database = gone
    results = [compiler.submit(kernel(factor), CUDA) for factor in (1, 2, 3)]
    until(lambda: sorted(here.asked) == [1, 2, 3])
    while here.open:
        here.let_go()
    assert all(isinstance(r.result(HANGS_S), Compiled) for r in results)
    compiler.submit(kernel(4), CUDA)
    assert here.asked[-1] == 4, "no help is expected for a while"
    gone.dispose()


def test_a_fault_of_its_own_costs_the_help_only(database: Database, fleet: Fleet) -> None:
    register(database)
    here = Here()
    broken = fleet(here, notify=lambda name, queue, subject: 1 / 0)
    for factor in (1, 2, 3):
        broken.submit(kernel(factor), CUDA)
    until(lambda: sorted(here.asked) == [1, 2, 3])


def test_who_closes_it_gets_everything_and_the_database_is_left_alone(
    database: Database, fleet: Fleet
) -> None:
    register(database)
    notified: list[str] = []
    compiler = fleet(here := Here(), notified=notified)
    results = [compiler.submit(kernel(factor), CUDA) for factor in (1, 2, 3)]
    until(lambda: len(notified) == 2)
    compiler.close()
    assert compiler._thread is not None and not compiler._thread.is_alive()
    compiler._database = None  # type: ignore[assignment]
    results.append(compiler.submit(kernel(4), CUDA))
    assert sorted(here.asked) == [1, 2, 3, 4]
    while here.open:
        here.let_go()
    assert all(isinstance(r.result(HANGS_S), Compiled) for r in results)


def test_a_draining_node_takes_nothing_and_is_not_counted_on(database: Database, tmp_path: Path) -> None:
    register(database)
    with database.write() as session:
        CompilationRepository(session).want([CompilationRequest("k" * 64, QUEUE, kernel(1), CUDA)])
        WorkerRepository(session).drain("node")
        assert WorkerRepository(session).compile_slots(QUEUE) == 0
    settings = Settings(_env_file=None, data_dir=tmp_path)
    context = Context(settings, database, SilentNotifier(), "node")
    assert not compile_node.run_next(context, QUEUE)
    assert not compile_node.answer(context, "k" * 64)


class Slow:
    """A compiler that counts, rejects every fifth, takes a moment and begins when it may."""

    def __init__(self, width: int, may_begin: Callable[[], object] = lambda: True) -> None:
        self.asked: Counter[int] = Counter()
        self.pool = ThreadPoolExecutor(width)
        self.may_begin = may_begin

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        return self.pool.submit(self._compile, int(kernel.configuration["FACTOR"]))

    def _compile(self, factor: int) -> Compiled | Rejected:
        until(self.may_begin)
        time.sleep(0.005)
        self.asked[factor] += 1
        if factor % 5 == 0:
            return Rejected(stage=Stage.COMPILE, reason=f"no {factor}")
        return Compiled(f"{factor}".encode(), "scale", CompileFacts(), "", ())


def test_many_kernels_over_two_workers_and_three_nodes_each_get_their_own_binary(
    database: Database, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Slow(3)
    monkeypatch.setattr(compile_node, "_compiler", lambda context: elsewhere)
    with node(database, tmp_path, "a"), node(database, tmp_path, "b"), node(database, tmp_path, "c"):
        workers: list[tuple[FleetCompiler, Slow]] = []

        def many_came_from_nodes() -> bool:
            return sum(compiler.helped for compiler, _ in workers) > 10

        # A node's answer takes some ten statements, so a slow host would end the work here first.
        workers += [(fleet(here, 2), here) for here in (Slow(2, many_came_from_nodes) for _ in range(2))]
        results = [
            (factor, compiler.submit(kernel(factor), CUDA)) for factor in range(60) for compiler, _ in workers
        ]
        for factor, result in results:
            outcome = result.result(HANGS_S)
            if factor % 5:
                assert isinstance(outcome, Compiled)
                assert outcome.binary == f"{factor}".encode()
            else:
                assert isinstance(outcome, Rejected)
                assert outcome.reason == f"no {factor}"
    assert many_came_from_nodes()
    assert max(elsewhere.asked.values()) == 1, "the fleet compiles nothing twice"
    for compiler, here in workers:
        assert max(here.asked.values()) == 1
        assert compiler._orders == {}


def test_a_compile_node_serves_what_it_has_compilers_for() -> None:
    (plan,) = plan_pools(("compile",), [], 0, 3)
    assert plan == PoolPlan("compile", ("compile.cuda",), 3)
    assert plan.compile_slots == 3
    here = compile_queue(DEVICE)
    (plan,) = plan_pools(("compile",), [DEVICE, CUDA], 0, 1, {"compile.cuda": "no NVRTC"})
    assert plan == PoolPlan("compile", (here,), 1, compiles_for=(DEVICE,))
    light, _ = plan_pools(("control", "compile"), [], 0, 1)
    assert light.compile_slots == 0
    with pytest.raises(Unavailable, match="no NVRTC"):
        plan_pools(("compile",), [], 0, 1, {"compile.cuda": "no NVRTC"})


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compilers_missing() == {}, "NVRTC is one of the tests' requirements"
    (tmp_path / "only_here.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("worker.supervision.pool_plans._LOAD_NVRTC", "import only_here")
    assert compilers_missing() == {}, "packages are found where this process finds them"
    monkeypatch.setattr("worker.supervision.pool_plans._LOAD_NVRTC", "raise SystemExit('NVRTC is missing')")
    assert compilers_missing() == {f"{COMPILE_PREFIX}cuda": "NVRTC is missing"}
