"""Telling words of the user's kernel in CUDA are looked for where a winner has some."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.sandbox.kernels import kernel
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import CompileFacts
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.tuning.execution.baseline_knowledge import BaselineKnowledge
from warpsmith.tuning.session.baseline_kernel import know_words
from warpsmith.tuning.session.device_session import DeviceSession


class Session:
    """What `know_words` asks a session for."""

    def __init__(self, backend: Backend, known: frozenset[str]) -> None:
        self.compiled: list[ConfiguredKernel] = []
        own = kernel(backend, "")
        template = SimpleNamespace(configured=lambda _: own)
        self.job: Any = SimpleNamespace(kernel=own.kernel, space=SimpleNamespace(defaults={}))
        self.inputs: Any = SimpleNamespace(
            baseline=BaselineKnowledge(own_telling=known), user_template=template
        )

    def compile(self, asked: ConfiguredKernel) -> Compiled:
        self.compiled.append(asked)
        return Compiled(b"", "f", CompileFacts(), telling=("__LINE__",))


@pytest.mark.parametrize(
    ("backend", "known", "told", "words"),
    [
        (Backend.CUDA, (), (), ()),
        (Backend.CUDA, (), ("__LINE__",), ("__LINE__",)),
        (Backend.HIP, (), ("__DATE__",), ("__LINE__",)),
        (Backend.CUDA, ("__DATE__",), ("__DATE__",), ("__DATE__",)),
        # Its baseline has looked.
        (Backend.OPENCL, (), ("__LINE__",), ()),
    ],
)
def test_the_user_s_words_are_learned_when_a_winner_has_others(
    backend: Backend, known: tuple[str, ...], told: tuple[str, ...], words: tuple[str, ...]
) -> None:
    session = Session(backend, frozenset(known))
    know_words(cast(DeviceSession, session), told)
    assert session.inputs.baseline.own_telling == frozenset(words)
    assert [k.tells_words for k in session.compiled] == [True] * (words != known)
