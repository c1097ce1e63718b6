"""Licences of locked packages: which are permitted, and that the table names every one."""

from typing import Any

import pytest

from scripts import licences
from scripts.licences import Pin, licence_of, permitted, pins, problems

ONE = Pin("one", "1.0")


def test_every_locked_package_has_a_permitted_licence() -> None:
    table = licences.read_table(licences.TABLE.read_text())
    wanted = licences.locked()
    assert len(wanted) > 100
    assert list(problems(wanted, table)) == []


def test_the_table_names_no_package_that_is_not_locked() -> None:
    assert licences.read_table(licences.TABLE.read_text()).keys() - licences.locked() == set()


@pytest.mark.parametrize("name", [*licences.EXCEPTIONS, *licences.READ_BY_HAND])
def test_every_special_case_is_of_a_locked_package(name: str) -> None:
    assert name in {pin.name for pin in licences.locked()}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "one 1.0: not in requirements/licences.json; run make lock"),
        ({ONE: "unknown"}, "one 1.0: its licence is unknown; read it, and add it to READ_BY_HAND"),
        ({ONE: "GPL-3.0-only"}, "one 1.0: GPL-3.0-only is not on the list of permitted licences"),
        ({Pin("one", "2.0"): "MIT"}, "one 1.0: not in requirements/licences.json; run make lock"),
    ],
)
def test_a_package_without_a_permitted_licence_is_named(table: dict[Pin, str], said: str) -> None:
    assert list(problems([ONE], table)) == [said]


def test_a_package_with_a_permitted_licence_is_not() -> None:
    assert list(problems([ONE], {ONE: "MIT"})) == []


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("MIT", True),
        ("AGPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-2.0-only OR AGPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND BSD-3-Clause", True),
        ("(MIT OR GPL-2.0-only) AND AGPL-3.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MPL-2.0 AND MIT", True),
        ("unknown", False),
        ("", False),
    ],
)
def test_an_expression_needs_one_alternative_that_is_permitted(expression: str, holds: bool) -> None:
    assert permitted(expression) is holds


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ({"license_expression": "MIT OR Apache-2.0"}, "MIT OR Apache-2.0"),
        ({"license": "BSD"}, "BSD-3-Clause"),
        ({"license": "see LICENSE", "classifier": ["License :: OSI Approved :: MIT License"]}, "MIT"),
        (
            {
                "classifier": [
                    "License :: OSI Approved :: MIT License",
                    "License :: OSI Approved :: Apache Software License",
                ]
            },
            "Apache-2.0 OR MIT",
        ),
        ({"license": "Copyright somebody, all rights reserved"}, "unknown"),
        ({"classifier": ["License :: OSI Approved :: Some New License"]}, "unknown"),
        ({"classifier": ["Typing :: Typed"]}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_licence_is_read_from_metadata_or_unknown(metadata: dict[str, Any], licence: str) -> None:
    assert licence_of(metadata) == licence


def test_pins_are_read_on_every_platform_and_by_their_plain_names() -> None:
    lock = 'Some_Name[extra]==1.0 ; sys_platform == "win32" \\\n    --hash=sha256:00\nother==2.0.post1 \\\n'
    assert pins(lock) == {Pin("some-name", "1.0"), Pin("other", "2.0.post1")}


def test_two_versions_of_a_package_are_asked_for_separately() -> None:
    newer, other = Pin("one", "2.0"), Pin("other", "1.0")
    assert licences.rounds([newer, ONE, other]) == [[ONE, other], [newer]]


def test_a_table_is_read_as_it_was_written() -> None:
    table = {ONE: "MIT", Pin("two", "2"): "unknown"}
    assert licences.read_table(licences.table_text(table)) == table


def test_the_table_for_a_reader_gives_the_reason_of_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "EXCEPTIONS", {"one": "because"})
    assert "| one | 1.0 | LicenseRef-Own; because |" in licences.markdown({ONE: "LicenseRef-Own"})
