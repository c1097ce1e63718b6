"""A model completes a job file over real HTTP, and hears what was wrong with its reply."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import settings_of
from tests.agents.model_server import Turn, in_order, model_server
from tests.extensions.scaffold.test_fill import REFERENCE, REPLY, SOURCE
from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.errors import Unavailable
from warpsmith.extensions.scaffold.command.fill import Filler
from warpsmith.extensions.scaffold.command.fill_ways import FillWays, completed
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.settings import Settings

WRONG = REPLY | {"reference": REFERENCE.replace("3 * x", "2 * x")}


def turn(reply: dict[str, Any]) -> Turn:
    return Turn(json.dumps(reply))


def made(folder: Path, settings: Settings) -> str:
    """The job file that a model completes."""
    (folder / "scale.cl").write_text(SOURCE)
    with JobCompiler(settings) as compiler:
        filler = Filler([folder / "scale.cl"], folder / "job.yaml", InitOptions(), compiler)
        text = completed(filler, FillWays(asks_model=True))
    assert text is not None
    return text


def test_a_wrong_reply_is_mended_by_its_author(tmp_path: Path) -> None:
    with model_server(in_order(turn(WRONG), turn(REPLY))) as server:
        text = made(tmp_path, settings_of(server.url, openai_max_output_tokens=8000))
    assert "Filled in by a model (m): it compiles; launched with n=100" in text and "3 * x" in text
    said = server.requests[1]["messages"][-1]["content"]
    assert "the kernel and its reference differ" in said


def test_facts_are_kept_where_the_reference_alone_is_wrong(tmp_path: Path) -> None:
    with model_server(in_order(*[turn(WRONG)] * 3)) as server:
        text = made(tmp_path, settings_of(server.url, openai_max_output_tokens=8000))
    assert "kind: numpy" not in text.replace("#   kind: numpy", "")
    assert "its reference is left out: " in text and "as a model says" in text


def test_a_model_that_is_never_right_writes_nothing(tmp_path: Path) -> None:
    wrong = REPLY | {"grid": ["ceil_div(n, 128)"], "reference": ""}
    with (
        model_server(in_order(*[turn(wrong)] * 3)) as server,
        pytest.raises(Unavailable, match="were never written"),
    ):
        made(tmp_path, settings_of(server.url, openai_max_output_tokens=8000))


def test_without_a_model_the_error_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="WARPSMITH_OPENAI_BASE_URL"):
        made(tmp_path, Settings(_env_file=None))
