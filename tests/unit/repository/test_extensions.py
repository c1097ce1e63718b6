"""Extensions: every registered object loads, and another package adds one of each by an entry point alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.registry import Extension, Kind, extensions, load, named

MODULE = """
from dataclasses import replace
from pathlib import Path

from warpsmith.extensions.rules.analysis.draft import Rule, RuleChange
from warpsmith.extensions.scaffold.ports import Opened
from warpsmith.search.searchers.simple_searchers import GridSearcher

class Commented(Rule):
    name = "commented"
    keeps_accesses = keeps_places = needs_no_macro = True

    def apply(self, draft):
        return draft.changed(RuleChange(self.name, "the first line", prologue="// from elsewhere\\n"))


def lines(wanted):
    return {"lines.txt": wanted.result.job.name}


class Importer:
    def takes(self, path):
        return path.suffix == ".elsewhere"

    def opened(self, files, sources, target, wanted):
        return Opened(tuple(Path(line) for line in files[0].read_text().split()), replace(wanted, entry="f"))


IMPORTER = Importer()


class Backwards(GridSearcher):
    def choose(self):
        return int(max(n for n, closed in enumerate(self.asked) if not closed))


def add(app):
    @app.command()
    def elsewhere() -> None:
        print("a command from elsewhere")


def probe():
    return []


def open_device(index):
    raise NotImplementedError


def compile_source(request):
    raise NotImplementedError
"""
LANGUAGE = """
from warpsmith.domain.language import Language

LANGUAGE = Language(name="slang", devices=("cuda",), module="elsewhere.parts", endings=(".slang",))
"""
MANIFEST = """
from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.LANGUAGE: {"slang": "elsewhere.language:LANGUAGE"},
        Kind.RULE: {"commented": "elsewhere.parts:Commented"},
        Kind.EXPORT: {"lines": "elsewhere.parts:lines"},
        Kind.IMPORTER: {"elsewhere": "elsewhere.parts:IMPORTER"},
        Kind.SEARCHER: {"backwards": "elsewhere.parts:Backwards"},
        Kind.COMMANDS: {"elsewhere": "elsewhere.parts:add"},
    }
)
"""

LANGUAGE_USED = """
from warpsmith.backends.registry import backend_module
from warpsmith.domain.device import Backend
from warpsmith.domain.kernels.kernel import Kernel

written = {"name": "y", "dtype": "float32", "role": "output", "shape": [4]}
launch = {"grid": [1], "block": [4]}
fields = {"backend": "slang", "source": "f", "entry": "f", "arguments": [written], "launch": launch}
kernel = Kernel.model_validate(fields)
assert kernel.backend is Backend("slang") and backend_module(kernel.backend).probe() == []
"""
RULE_USED = """
from testbed.example_jobs import load_example
from warpsmith.domain.jobs.job import RewritePolicy
from warpsmith.domain.jobs.rewriter import rewriter, rule_names

job = load_example("softmax", "opencl")
assert rule_names()[-1] == "commented"
for policy, rules in (({"allow": ["commented"]}, ["commented"]), ({"deny": ["commented"]}, [])):
    made = rewriter().make_template(job.model_copy(update={"rewrite": RewritePolicy.model_validate(policy)}))
    assert [a.rule for a in made.template.applied if a.rule == "commented"] == rules
    assert made.template.kernel.text.startswith("// from elsewhere") == bool(rules)
"""
EXPORT_USED = """
import sys
from pathlib import Path

from tests.exports.results import result
from warpsmith.extensions.exports.wanted import ExportRequest
from warpsmith.extensions.exports.write import write_export

paths = write_export(ExportRequest(result()), "lines", Path(sys.argv[1]))
assert [p.name for p in paths] == ["lines.txt", "evidence.json"]
assert paths[0].read_text() == result().job.name
"""
IMPORTER_USED = """
import sys
from pathlib import Path

from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.ports import opened

given = Path(sys.argv[1]) / "job.elsewhere"
given.write_text("a.cu b.cu")
found = opened([given], Path("job.yaml"), InitOptions())
assert found.sources == (Path("a.cu"), Path("b.cu")) and found.wanted.entry == "f"
"""
SEARCHER_USED = """
from testbed.example_jobs import load_example
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Parameter, Space
from warpsmith.search import enumerate_space, make_searcher

data = load_example("softmax", "opencl").model_dump(mode="json", exclude_unset=True)
job = Job.model_validate(data | {"searcher": "backwards"})
feasible = enumerate_space(Space(parameters=(Parameter(name="N", values=(1, 2, 3), default=1),)), [{}])
searcher = make_searcher(job.searcher, feasible, 7)
assert type(searcher).__name__ == "Backwards" and searcher.ask(1) == [{"N": 3}]
"""
COMMAND_USED = """
from warpsmith.cli.app import main

main(["elsewhere"])
"""


@pytest.mark.parametrize("kind", Kind)
def test_every_registered_object_loads(kind: Kind) -> None:
    for name in named(kind):
        assert load(kind, name) is not None


def test_two_extensions_do_not_share_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Extension({Kind.EXPORT: {"c": "elsewhere:c"}})
    found = extensions()
    monkeypatch.setattr("warpsmith.registry.extensions", lambda: (*found, twice))
    named.cache_clear()
    with pytest.raises(ValueError, match="two extensions provide the export 'c'"):
        named(Kind.EXPORT)
    named.cache_clear()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a package is installed that is not this one."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "elsewhere"
    package.mkdir()
    (package / "__init__.py").write_text(MANIFEST)
    (package / "language.py").write_text(LANGUAGE)
    (package / "parts.py").write_text(MODULE)
    about = folder / "elsewhere-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[warpsmith.extensions]\nelsewhere = elsewhere:EXTENSION\n")
    return folder


@pytest.mark.parametrize(
    "script",
    [LANGUAGE_USED, RULE_USED, EXPORT_USED, IMPORTER_USED, SEARCHER_USED, COMMAND_USED],
    ids=["language", "rule", "export", "importer", "searcher", "command"],
)
def test_another_package_adds_one_of_each(installed: Path, tmp_path: Path, script: str) -> None:
    path = os.pathsep.join([str(installed), str(Path.cwd()), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert script is not COMMAND_USED or done.stdout == "a command from elsewhere\n"
