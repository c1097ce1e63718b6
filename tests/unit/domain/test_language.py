"""Tests of the table of languages: a further one needs no change of another file."""

from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter, ValidationError

from warpsmith.domain import language
from warpsmith.domain.device import Backend, written_backends
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.language import Language, languages
from warpsmith.registry import load_all

KERNEL = {
    "source": "kernel f",
    "entry": "f",
    "arguments": [{"name": "y", "dtype": "float32", "role": "output", "shape": [4]}],
    "launch": {"grid": [1], "block": [4]},
}


MADE = Language(
    name="slang",
    devices=("cuda",),
    problem=lambda kernel: "options: it has none" if kernel.options else "",
)


@pytest.fixture
def further(monkeypatch: pytest.MonkeyPatch) -> Iterator[Language]:
    monkeypatch.setattr(language, "load_all", lambda kind: (*load_all(kind), MADE))
    languages.cache_clear()
    yield MADE
    languages.cache_clear()


def test_every_back_end_has_a_language() -> None:
    assert [backend.language.name for backend in Backend] == list(Backend)


def test_a_registered_language_is_a_back_end(further: Language) -> None:
    backend = TypeAdapter(Backend).validate_json('"slang"')
    assert backend is Backend("slang")
    assert backend.language is further
    assert backend.runs_on == (Backend.CUDA,)
    assert backend in written_backends()
    assert TypeAdapter(Backend).dump_json(backend) == b'"slang"'


def test_a_registered_language_checks_its_kernels(further: Language) -> None:
    assert Kernel.model_validate({**KERNEL, "backend": further.name}).backend.value == "slang"
    with pytest.raises(ValidationError, match="options: it has none"):
        Kernel.model_validate({**KERNEL, "backend": further.name, "options": ["-O3"]})


def test_a_name_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "load_all", lambda kind: (MADE, MADE))
    languages.cache_clear()
    try:
        with pytest.raises(ValueError, match="two languages have one name"):
            languages()
    finally:
        languages.cache_clear()


def test_a_name_of_no_language_is_refused() -> None:
    with pytest.raises(ValidationError, match="'cuda', 'opencl', 'hip', 'triton' or 'replay'"):
        TypeAdapter(Backend).validate_python("metal")
