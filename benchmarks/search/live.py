"""Several searches in turns on one live measurement, so that only the search differs.

What one of them has had measured the others are told, too, when they ask for it: they all search the same
table, of which no more is filled in than they look at.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.search.peers import cache_file, kernel_tuner_environment
from benchmarks.search.replay import Trace
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.search.set_searcher import SetSearcher
from warpsmith.tuning.ports import Searcher


class Stream(Protocol):
    """One search: asked and told in turns."""

    name: str
    keys: list[str]
    """Of what it has been told of, in that order."""

    def ask(self) -> Configuration | None:
        """The configuration whose value it wants; None where it has ended."""
        ...

    def tell(self, value: float | None) -> None:
        """The value of what it asked for last; None: it failed."""
        ...

    def close(self) -> None:
        """End it, finished or not."""
        ...


class OwnStream:
    """One of our searchers, to a budget."""

    def __init__(self, name: str, searcher: SetSearcher, budget: int) -> None:
        self.name = name
        self.keys: list[str] = []
        self._searcher = searcher
        self._budget = budget
        self._asked: Configuration = {}

    def ask(self) -> Configuration | None:
        """See `Stream.ask`."""
        asked = self._searcher.ask(1) if len(self.keys) < self._budget else ()
        if not asked:
            return None
        (self._asked,) = asked
        return self._asked

    def tell(self, value: float | None) -> None:
        """See `Stream.tell`."""
        self.keys.append(configuration_key(self._asked))
        self._searcher.tell(self._asked, value)

    def close(self) -> None:
        """See `Stream.close`."""


class KernelTunerStream:
    """One of Kernel Tuner's strategies in a process of its own, which asks for each value as it needs it.

    Args:
        restrictions: expressions over the parameters, in Kernel Tuner's syntax, which is ours.
        configurations: the feasible set: what the restrictions allow, as we count it.

    Raises:
        RuntimeError: the bench environment is missing.
    """

    def __init__(
        self,
        strategy: str,
        seed: int,
        budget: int,
        tune_params: Mapping[str, Sequence[Any]],
        restrictions: Sequence[str],
        configurations: Sequence[Configuration],
    ) -> None:
        self.name = f"Kernel Tuner {strategy}"
        self.keys: list[str] = []
        self._asked: Configuration = {}
        self._by_name = {",".join(str(c[n]) for n in tune_params): c for c in configurations}
        python = kernel_tuner_environment()
        self._folder = tempfile.TemporaryDirectory()
        cache = Path(self._folder.name) / "cache.json"
        entries = {key: {**c, "time": 1.0} for key, c in self._by_name.items()}
        cache.write_text(cache_file("live", "live", tune_params, entries))
        job = {
            "live": True,
            "kernel": "live",
            "tune_params": {name: list(values) for name, values in tune_params.items()},
            "restrictions": list(restrictions),
            "strategies": [strategy],
            "seeds": [seed],
            "budget": min(budget, len(entries)),
            "cache": str(cache),
        }
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("kernel_tuner_peer.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder.name,
        )
        self._write(job)

    def ask(self) -> Configuration | None:
        """See `Stream.ask`. RuntimeError: Kernel Tuner failed; its words are on stderr."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended without a result, exit code {self._process.wait()}")
        said = json.loads(line)
        if "ask" not in said:
            return None
        self._asked = self._by_name[said["ask"]]
        return self._asked

    def tell(self, value: float | None) -> None:
        """See `Stream.tell`."""
        self.keys.append(configuration_key(self._asked))
        self._write(value)

    def close(self) -> None:
        """See `Stream.close`."""
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def _write(self, what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()


class Turns(Searcher):
    """The streams as one searcher: each has one configuration out at most."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.values: dict[str, float | None] = {}
        """By key, in the order in which they were measured."""
        self._idle = list(streams)
        self._waiting: dict[str, list[Stream]] = {}

    def ask(self, count: int) -> Sequence[Configuration]:
        """What the next streams want that nobody has measured, nor asked for."""
        out: list[Configuration] = []
        while self._idle and len(out) < count:
            stream = self._idle.pop(0)
            wanted = stream.ask()
            while wanted is not None and configuration_key(wanted) in self.values:
                stream.tell(self.values[configuration_key(wanted)])
                wanted = stream.ask()
            if wanted is None:
                continue
            waiting = self._waiting.setdefault(configuration_key(wanted), [])
            if not waiting:
                out.append(wanted)
            waiting.append(stream)
        return out

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """To all who wait for it, and to whoever asks later; the first value counts."""
        key = configuration_key(configuration)
        value = self.values.setdefault(key, value)
        for stream in self._waiting.pop(key, ()):
            stream.tell(value)
            self._idle.append(stream)


def trace(stream: Stream, values: Mapping[str, float | None]) -> Trace:
    """What a stream was told, in order."""
    return [values[key] for key in stream.keys]
