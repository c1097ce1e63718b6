"""The rules of the tree: where things lie, how large they are, and what no file may name."""

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

from scripts import house
from testbed.rooms import read_rooms

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("warpsmith", "agents", "db", "worker", "api")
APPLICATIONS = ("api", "worker", "agents", "db")
FILES = ("pyproject.toml", "docker-compose.yml", "Dockerfile", "README.md", "LICENSE", "Makefile")
FOLDERS = (*PACKAGES, "testbed", "tests", "examples", "benchmarks", "docs", "docs/adr", "requirements")

# Written in pieces, so that this file does not name what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(?:" + "|".join(("work", "root", "home")) + r")(?:/|\b(?![\w.-]))")
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("pypi", "nvidia", "com"),
        ("download", "pytorch", "org"),
        ("registry", "npmjs", "org"),
        ("conda", "anaconda", "org"),
    )
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def modules(package: str) -> list[Path]:
    """Every module of a package, by path."""
    return sorted((ROOT / package).rglob("*.py"))


def project_files() -> list[Path]:
    """Files that git keeps or would keep; without git, everything outside of hidden folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        found = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:
        shown = (p for p in ROOT.rglob("*") if not any(part[0] == "." for part in p.relative_to(ROOT).parts))
        found = [p for p in shown if "__pycache__" not in p.parts]
    return sorted(p for p in found if p.is_file())


def text_lines(path: Path) -> list[str]:
    """The lines of a text file; none of a binary one."""
    data = path.read_bytes()
    return [] if b"\0" in data else data.decode(errors="replace").splitlines()


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Public functions and classes of a module, and public methods of its public classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and any(
            ast.unparse(d) == "overload" for d in node.decorator_list
        ):
            continue
        # The name of a test is a sentence.
        if isinstance(node, Definition) and not node.name.startswith(("_", "test_")):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize("name", FILES)
def test_file_exists(name: str) -> None:
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_exists(name: str) -> None:
    assert (ROOT / name).is_dir()


@pytest.mark.parametrize("name", PACKAGES)
def test_file_path_equals_import_name(name: str) -> None:
    assert (ROOT / name / "__init__.py").is_file()


def test_the_types_of_every_module_are_checked() -> None:
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    found = [p.relative_to(ROOT) for p in project_files() if p.suffix == ".py"]
    assert [str(p) for p in found if p.parts[0] not in checked] == []


def test_there_is_no_python_in_web() -> None:
    assert [p for p in project_files() if p.is_relative_to(ROOT / "web") and p.suffix == ".py"] == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for name in PACKAGES
        for path in modules(name)
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_everything_public_in_the_core_has_a_docstring() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path in modules("warpsmith")
        for name, node in public_definitions(ast.parse(path.read_text()).body)
        if not ast.get_docstring(node)
    ]
    assert silent == []


def test_no_room_has_more_lines_than_its_budget() -> None:
    assert house.above(house.lines_by_room(), house.limits()["lines"]) == {}


def test_every_folder_of_the_product_has_a_budget() -> None:
    deep = {ROOT / "warpsmith": "*/__init__.py", ROOT / "warpsmith/extensions": "*/__init__.py"}
    found = [path.parent for folder, files in deep.items() for path in folder.glob(files)]
    rooms = {str(path.relative_to(ROOT)) for path in found}
    assert rooms | set(PACKAGES) <= house.limits()["lines"].keys()


def test_the_house_keeps_its_limits() -> None:
    """Complex functions, classes that share a name, docstrings that are riddles, full folders."""
    found = house.figures()
    assert house.above(found, house.limits()["house"]) == {}, "\n".join(
        [*map(str, house.complex_functions().items()), *house.shared_names(), *house.riddles()]
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a", 1),
        ("return a and b and c", 3),
        ("return b if a else c", 2),
        ("for x in a:\n  if x:\n   return x", 3),
        ("while a:\n  try:\n   b()\n  except ValueError:\n   return c", 3),
        ("match a:\n  case 1:\n   return b\n  case _:\n   return c", 3),
        ("def inner():\n  return a or b\n return inner", 1),
        ("return [x for x in a if x if b]", 4),
    ],
)
def test_complexity_counts_branches_operands_and_comprehensions(body: str, expected: int) -> None:
    function = ast.parse(f"def f(a, b, c):\n {body}").body[0]
    assert house.complexity(function) == expected


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in project_files()
        for number, line in enumerate(text_lines(path), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_no_file_names_a_package_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {host}"
        for path in project_files()
        for number, line in enumerate(text_lines(path), 1)
        for host in REGISTRY_HOSTS
        if host in line
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cd /" + "work", True),
        ("see /" + "work/main/x.py", True),
        ("COPY . /" + "root/app", True),
        ("python -m warpsmith/" + "worker", False),
        ("in the api/" + "worker packages, /worker and /roots", False),
        ("WORKDIR /app", False),
    ],
)
def test_the_search_for_machine_paths_finds_them(line: str, found: bool) -> None:
    assert bool(MACHINE_PATH.search(line)) is found


def test_no_dependency_ships_one_of_our_folder_names() -> None:
    """`agents` belongs to another project on the index; whoever adds it would shadow ours."""
    tops: dict[str, set[str]] = {}
    for distribution in distributions():
        for path in distribution.files or ():
            top = path.parts[0]
            module = top.removesuffix(".py") if len(path.parts) == 1 else top
            if module in APPLICATIONS:
                tops.setdefault(module, set()).add(distribution.metadata["Name"])
    assert tops == {}


def test_distributions_can_be_seen() -> None:
    """The test above says something only where installed files are listed."""
    seen = {str(path) for d in distributions() for path in d.files or ()}
    assert any(name.startswith("celery/") for name in seen)


@pytest.mark.parametrize("room", [name for name in house.limits()["lines"] if (ROOT / name).is_dir()])
def test_every_room_says_what_is_in_it(room: str) -> None:
    if room == house.BENCHMARKS:
        return
    lines = (ROOT / room / "AGENTS.md").read_text().splitlines()
    assert len(lines) <= 12
    assert lines[0] == f"# {room}"
    words = "\n".join(lines)
    (begin,) = re.findall(r"\*\*Begin with:\*\* `(.+)`", words)
    assert (ROOT / room / begin).is_file()
    (tests,) = re.findall(r"\*\*Tests:\*\* `\.venv/bin/python -m pytest (.+)`", words)
    assert tests.split() == read_rooms().get(room)


def test_the_reading_order_has_the_lines_that_it_says() -> None:
    rows = re.findall(r"^\| \d+ \| `(.+?)` \| (\d+) \|", (ROOT / "docs/reading-order.md").read_text(), re.M)
    told = {path: int(lines) for path, lines in rows}
    found = {path: len((ROOT / path).read_text().splitlines()) for path in told}
    assert {p: n for p, n in found.items() if abs(n - told[p]) > max(20, told[p] // 10)} == {}
    assert 10 <= len(told) <= 16 and sum(found.values()) < 5000
