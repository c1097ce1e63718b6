"""Triton kernels that run host code while they are compiled: nothing gets out, and the next one compiles.

Each file of `tests/adversarial/triton/hostile` says in its first line what must happen to it: `refused` with
a part of the reason, or `harmless`, which means that it compiles. Further lines may name an `entry` other
than `kernel`, limits in `seconds` and GiB of `memory`, and `variables` that the binary must be seen to have.
"""

import os
import re
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from testbed.deadlines import HANGS_S
from tests.sandbox.conftest import PoolMaker
from tests.sandbox.kernels import group_of, wait_until
from warpsmith.device_checks.absent_devices import any_cuda_device
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import CompilePool
from warpsmith.tuning.execution.variants import submit

FOLDER = Path(__file__).resolve().parents[1] / "adversarial" / "triton" / "hostile"
FILES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
DEVICE = any_cuda_device("sm_90")
SECRET = secrets.token_hex(16)
HEAD = "import triton\nimport triton.language as tl\n"
GOOD = f"""{HEAD}

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
"""
STEPS = 100_000
DEEP = {
    "parentheses": "(" * STEPS + "1" + ")" * STEPS,
    "signs": "-" * STEPS + "1",
    "shallower_signs": "-" * 400 + "1",
    "sum": "+".join(["1"] * 900),
    "attributes": "tl" + ".a" * 900,
    "functions": "lambda: " * 900 + "1",
}
"""Expressions that are deeper than a recursive reader may go."""


@dataclass(frozen=True)
class Outside:
    """What a kernel must neither change, reach nor read."""

    probe: Path
    secret: Path
    listener: socket.socket

    def fill(self, text: str) -> str:
        """`text` with the places that it attacks."""
        values = {"PROBE": self.probe, "SECRET": self.secret, "TOKEN": SECRET}
        values["PORT"] = self.listener.getsockname()[1]
        return re.sub(r"@([A-Z]+)@", lambda found: str(values[found[1]]), text)

    def untouched(self) -> bool:
        """No file was made or changed, and nobody connected."""
        try:
            self.listener.accept()
        except BlockingIOError:
            return not list(self.probe.iterdir()) and self.secret.read_text() == SECRET
        return False


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    """A folder that anybody may write, a file that anybody may read, an open port, and a secret variable."""
    monkeypatch.setenv("WARPSMITH_API_KEY", SECRET)
    probe, secret = tmp_path / "probe", tmp_path / "secret"
    probe.mkdir()
    probe.chmod(0o777)
    secret.write_text(SECRET)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        yield Outside(probe, secret, listener)


@pytest.fixture(scope="module")
def usual() -> Iterator[CompilePool]:
    """One child at a time."""
    made = CompilePool(workers=1)
    yield made
    made.close()


def compiled(pool: CompilePool, source: str, entry: str = "kernel") -> Compiled | Rejected:
    """What the pool makes of a kernel (x, y, n, BLOCK)."""
    buffers = [("x", "input"), ("y", "output")]
    arguments: list[dict[str, object]] = [
        {"name": n, "dtype": "float32", "role": role, "shape": ["n"]} for n, role in buffers
    ]
    job = Job.model_validate(
        {
            "name": "hostile",
            "kernel": {
                "backend": "triton",
                "source": source,
                "entry": entry,
                "arguments": [*arguments, {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"}],
                "constexprs": {"BLOCK": 128},
                "launch": {"grid": ["ceil_div(n, 128)"]},
            },
            "workloads": [{"dimensions": {"n": 1000}}],
        }
    )
    kernel = Template(kernel=job.kernel, space=job.space).configured({})
    return submit(pool, kernel, job.workloads, DEVICE).result(HANGS_S)


def waiting(pool: CompilePool) -> int:
    """A child that waits for the next request, and gets it."""
    if pool._idle.empty():
        pool.warm(Backend.TRITON, 1)
    wait_until(lambda: not pool._idle.empty())
    return pool._idle.queue[-1][1]._process.pid


def stated(name: str, word: str, otherwise: str) -> str:
    """What a comment at the top of a file says."""
    found = re.search(rf"^# {word}: (\S+)", FILES[name], re.MULTILINE)
    return found[1] if found else otherwise


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_does_no_more_than_it_states(
    name: str, outside: Outside, usual: CompilePool, make_pool: PoolMaker
) -> None:
    first = FILES[name].partition("\n")[0].removeprefix("# ")
    seconds, gibibytes = float(stated(name, "seconds", "60")), int(stated(name, "memory", "12"))
    limited = seconds < 60 or gibibytes < 12
    pool = make_pool(seconds, gibibytes << 30) if limited else usual
    environment = dict(os.environ)
    leader = waiting(pool)
    found = compiled(pool, outside.fill(FILES[name]), stated(name, "entry", "kernel"))
    assert outside.untouched()
    assert dict(os.environ) == environment
    wait_until(lambda: not group_of(leader))
    if first == "harmless":
        assert isinstance(found, Compiled), found
        assert any(stated(name, "variables", "none") in g for g in found.globals) == bool(found.globals)
        assert SECRET.encode() not in found.binary and SECRET not in found.log
        assert bool(found.globals) == ("# variables: " in FILES[name])
    else:
        assert isinstance(found, Rejected)
        assert first.removeprefix("refused: ") in found.reason
        assert SECRET not in found.reason + found.log
    after = compiled(usual, GOOD)
    assert isinstance(after, Compiled) and not after.globals, after


@pytest.mark.parametrize("place", ["default", "annotation", "body", "constant"])
@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_too_deeply_is_refused_and_no_fault(name: str, place: str, usual: CompilePool) -> None:
    deep = DEEP[name]
    texts = {
        "default": GOOD.replace("BLOCK: tl.constexpr", f"BLOCK: tl.constexpr = {deep}"),
        "annotation": GOOD.replace("x, y", f"x: {deep}, y"),
        "body": GOOD.replace("    i = ", f"    j = {deep}\n    i = "),
        "constant": GOOD.replace("@triton", f"SIZE = {deep}\n\n\n@triton").replace(
            "tl.load", "SIZE * tl.load"
        ),
    }
    try:
        found = compiled(usual, texts[place])
    except ValidationError as exc:
        assert "kernel.source" in str(exc)
        return
    if isinstance(found, Rejected):
        assert not re.search("crashed|an error of its own|ended by", found.reason), found


def test_a_source_that_is_no_python_is_refused_by_the_compiler(usual: CompilePool) -> None:
    found = compiled(usual, GOOD.replace("def kernel(", "def kernel(("))
    assert isinstance(found, Rejected) and "is no Python" in found.reason


def test_a_large_source_is_read_in_time(usual: CompilePool) -> None:
    many = "".join(f"SIZE_{n} = tl.constexpr({n})\n" for n in range(7000))
    assert len(many) > 190_000
    assert isinstance(compiled(usual, GOOD.replace("@triton", f"{many}\n\n@triton", 1)), Compiled)


def test_there_are_attacks_of_every_kind() -> None:
    verdicts = [text.partition("\n")[0] for text in FILES.values()]
    assert len(FILES) >= 60
    assert all(v == "# harmless" or re.fullmatch(r"# refused: .+", v) for v in verdicts)
    assert sum(v == "# harmless" for v in verdicts) >= 12
