"""Print the house's figures beside their limits in `rooms.toml`: `python scripts/house.py`.

Lines of each room, of ring 1 and of the product; functions that are too complex; classes that share a name;
docstrings that begin with a question word. Any above its limit is red; a long file is a hint.
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("warpsmith", "agents", "db", "worker", "api")
BENCHMARKS = "benchmarks"
EXTENSIONS = {PurePosixPath("warpsmith/extensions"), PurePosixPath("agents/rules")}
MAX_MODULE_LINES = 350
MAX_DOCUMENT_LINES = 200
MAX_FILES = 16
"""Modules of one folder, without `__init__`."""
MAX_COMPLEXITY = 15
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.match_case,
    ast.comprehension,
    ast.Assert,
)
RIDDLE = re.compile(r"(What|Whether|Of|How|Why|Who|Where|Those|Which|The same|As|That|It|None|Such|One)\b")
"""First words of a docstring that names no thing and no action."""


@cache
def limits() -> dict[str, dict[str, float]]:
    """Tables `lines` (budget of each room, by folder) and `house` of `rooms.toml`."""
    table: dict[str, dict[str, float]] = tomllib.loads((ROOT / "rooms.toml").read_text())
    return table


@cache
def modules(*packages: str) -> dict[PurePosixPath, str]:
    """Texts of the modules of packages, migrations left out, by path from the root."""
    found = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    texts = {PurePosixPath(path.relative_to(ROOT).as_posix()): path.read_text() for path in found}
    return {path: text for path, text in texts.items() if "migrations" not in path.parts}


@cache
def trees() -> dict[PurePosixPath, ast.Module]:
    """Syntax trees of the product's modules, by path."""
    return {path: ast.parse(text) for path, text in modules(*PACKAGES).items()}


@cache
def nodes() -> list[tuple[PurePosixPath, Any]]:
    """Functions, classes and modules of the product, each with its path."""
    kinds = (*FUNCTIONS, ast.Module, ast.ClassDef)
    return [(p, node) for p, tree in trees().items() for node in ast.walk(tree) if isinstance(node, kinds)]


def lines_by_room() -> dict[str, int]:
    """Lines of Python in each room with a budget; a file counts for the deepest room that holds it."""
    rooms = limits()["lines"]
    found = dict.fromkeys(rooms, 0)
    for path, text in modules(*PACKAGES, BENCHMARKS).items():
        lines = len(text.splitlines())
        found[next(str(p) for p in path.parents if str(p) in rooms)] += lines
        if path.parts[0] != BENCHMARKS:
            found["product"] += lines
            found["ring 1"] += lines * EXTENSIONS.isdisjoint(path.parents)
    return found


def complexity(function: ast.AST) -> int:
    """1, and 1 for each branch, loop, handler, `match` case, comprehension, its conditions, and operand of a
    condition after the first; functions inside count for themselves."""
    count, left = 1, list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, BRANCHES):
            count += 1 + (len(node.ifs) if isinstance(node, ast.comprehension) else 0)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        left.extend(ast.iter_child_nodes(node))
    return count


def complex_functions() -> dict[str, int]:
    """Functions above `MAX_COMPLEXITY`, as `path:name`, with their complexity."""
    return {
        f"{path}:{node.name}": found
        for path, node in nodes()
        if isinstance(node, FUNCTIONS) and (found := complexity(node)) > MAX_COMPLEXITY
    }


def shared_names() -> list[str]:
    """Names that classes of several modules have; a leading underscore does not make another name."""
    names = Counter(
        node.name.lstrip("_")
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, count in names.items() if count > 1)


@cache
def docstrings() -> list[tuple[PurePosixPath, str]]:
    """Docstrings of modules, classes and functions, and notes under attributes, each with its path."""
    return [
        (path, str(said.value.value))
        for path, node in nodes()
        for said in (node.body if isinstance(node, (ast.Module, ast.ClassDef)) else node.body[:1])
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant)
    ]


def riddles() -> list[str]:
    """Docstrings that begin with a question word or a pronoun, with their path."""
    return [f"{path}: {text.splitlines()[0]}" for path, text in docstrings() if RIDDLE.match(text)]


def full_folders() -> dict[str, int]:
    """Folders with more than `MAX_FILES` modules."""
    files = Counter(str(path.parent) for path in modules(*PACKAGES) if path.name != "__init__.py")
    return {folder: count for folder, count in files.items() if count > MAX_FILES}


def figures() -> dict[str, float]:
    """Figures of the whole house, by their limit's name."""
    return {
        "complex functions": len(complex_functions()),
        "shared class names": len(shared_names()),
        "riddles, percent": round(100 * len(riddles()) / len(docstrings()), 1),
        "full folders": len(full_folders()),
    }


def above(found: Mapping[str, float], limit: Mapping[str, float]) -> dict[str, float]:
    """Figures above their limit."""
    return {name: found[name] for name, most in limit.items() if found[name] > most}


def longer(paths: list[Path], limit: int) -> Iterator[str]:
    """A warning for each file with more lines than `limit`."""
    for path in sorted(paths):
        lines = len(path.read_text().splitlines())
        if lines > limit:
            yield f"warning: {path.relative_to(ROOT)} has {lines} lines, more than {limit}"


def main() -> int:
    """Print tables and warnings; returns 1 if a figure is above its limit."""
    red = 0
    for found, limit in ((lines_by_room(), limits()["lines"]), (figures(), limits()["house"])):
        for name, most in limit.items():
            print(f"{name:28}{found[name]:8,} of {most:7,}{'   TOO MANY' * (found[name] > most)}")
        red += len(above(found, limit))
    paths = [ROOT / path for path in modules(*PACKAGES)]
    documents = list((ROOT / "docs").rglob("*.md"))
    print(*longer(paths, MAX_MODULE_LINES), *longer(documents, MAX_DOCUMENT_LINES), sep="\n")
    return int(red > 0)


if __name__ == "__main__":
    sys.exit(main())
