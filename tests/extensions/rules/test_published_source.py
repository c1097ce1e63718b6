"""Published tuned sources: the chosen branches, in the user's layout, and the same program."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from testbed.example_jobs import FAMILIES, OpenClCase, load_example, run_opencl, small
from testbed.repetitions import repetitions
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import holds
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.extensions.rules.templater import make_template
from warpsmith.source.tree import published_source as module
from warpsmith.source.tree.published_source import published_source
from warpsmith.testing.jobs import DEVICE

DRAWN = 4


def drawn(job: Job, count: int | None = None) -> list[ConfiguredKernel]:
    """The defaults, and configurations that every constraint allows."""
    template, rng = make_template(job).template, random.Random(job.name)
    count = repetitions(DRAWN, 1) if count is None else count
    found = [dict(template.space.defaults)]
    scope = DEVICE.scope() | job.workloads[-1].scope()
    for _ in range(5000):
        made = {p.name: rng.choice(p.values) for p in template.space.parameters}
        if len(found) <= count and holds(template.space.constraints, scope | made):
            found.append(made)
    assert len(found) == count + 1
    return [template.configured(c) for c in found]


def as_published(kernel: ConfiguredKernel, original: str) -> ConfiguredKernel:
    """A kernel that is compiled from the published text as it stands."""
    text = published_source(kernel, original)
    return kernel.model_copy(
        update={"kernel": kernel.kernel.model_copy(update={"source": text}), "defines": {}}
    )


def configured(text: str, defines: dict[str, str]) -> ConfiguredKernel:
    kernel = load_example("stencil", "opencl").kernel.model_copy(update={"source": text})
    return ConfiguredKernel(kernel=kernel, defines=defines)


def published(text: str, original: str = "", **defines: str) -> str:
    return published_source(configured(text, defines), original)


@pytest.mark.slow
def test_the_published_text_computes_the_same_bits(tmp_path: Path) -> None:
    cases: dict[str, list[OpenClCase]] = {"full": [], "published": []}
    for family in FAMILIES:
        job = small(load_example(family, "opencl"), family)
        for kernel in drawn(job):
            shown = as_published(kernel, job.kernel.text)
            assert shown.source != kernel.source
            cases["full"].append(OpenClCase(family, job, kernel, job.workloads[-1]))
            cases["published"].append(OpenClCase(family, job, shown, job.workloads[-1]))
    for name, of_name in cases.items():
        (tmp_path / name).mkdir()
        assert run_opencl(of_name, tmp_path / name) == []
    for n, case in enumerate(cases["full"]):
        with (
            np.load(tmp_path / f"full/{n}-out.npz") as full,
            np.load(tmp_path / f"published/{n}-out.npz") as own,
        ):
            assert all(full[b].tobytes() == own[b].tobytes() for b in full), (case.label, case.kernel)


@pytest.mark.parametrize("backend", ["cuda", "opencl"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_text_has_the_chosen_branches_only(family: str, backend: str) -> None:
    job = load_example(family, backend)
    for number, kernel in enumerate(drawn(job)):
        text = published_source(kernel, job.kernel.text)
        assert not re.search(r"#(if|elif)\w* .*\bWS_|#line", text)
        lines, own = len(text.splitlines()), len(job.kernel.text.splitlines())
        assert lines < (2 if number == 0 else 5) * own
        assert lines < len(kernel.source.splitlines())


def test_what_the_user_may_still_choose_stays() -> None:
    text = (
        "#if WS_A > 1\nint a;\n#elif defined(DEBUG)\nint b;\n#elif WS_A == 1\nint c;\n#else\nint d;\n#endif\n"
        "#ifdef DEBUG\n#if WS_A == 1\nint e;\n#endif\n#endif\n"
    )
    assert published(text, text, WS_A="1") == (
        "\n#if defined(DEBUG)\nint b;\n#else\nint c;\n#endif\n#ifdef DEBUG\nint e;\n#endif\n"
    ).lstrip("\n")
    assert published(text, text, WS_A="2") == "int a;\n#ifdef DEBUG\n#endif\n"


def test_a_macro_that_only_may_be_defined_decides_nothing() -> None:
    text = "#ifdef DEBUG\n#define WS_B 1\n#endif\n#ifdef WS_B\nint a;\n#else\nint b;\n#endif\n"
    assert published(text, text, WS_A="1") == text
    text = text.replace("#ifdef DEBUG\n", "#if WS_A\n")
    assert published(text, text, WS_A="1") == "int a;\n"


@pytest.mark.parametrize(
    "text",
    [
        "#if WS_A\nint a = __LINE__;\n#endif\n",
        "#if WS_A\nint a;\n",
        "int a;\n#endif\n",
        "#undef WS_A\n#if WS_A\nint a;\n#endif\n",
        "#if WS_A /* and\n so on */\nint a;\n#endif\n",
    ],
)
def test_where_it_is_not_certain_the_full_text_is_published(text: str) -> None:
    kernel = configured(text, {"WS_A": "1"})
    assert published_source(kernel, "") == kernel.source


def test_a_text_that_is_not_the_same_program_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = drawn(load_example("softmax", "opencl"), 0)[0]
    honest = module._indented
    for wrong in (lambda t: t.replace("+", "-", 1), lambda t: t.replace("#define WS_", "#define WT_", 1)):
        module._published.cache_clear()
        monkeypatch.setattr(module, "_indented", lambda t, o, w=wrong: w(honest(t, o)))
        assert published_source(kernel, "") == kernel.source
    module._published.cache_clear()


def test_lines_stand_as_the_user_wrote_them() -> None:
    own = "void f(\n        int a)\n{\n    // why\n\n    g(a,\n      1);\n}\n"
    text = own.replace("    g(", "    \n#if WS_A > 1\nfor (int i = 0; i < WS_A; ++i) {\n    g(").replace(
        "1);", "1);\n}\n#else\ng(a);\n#endif\n"
    )
    assert published(text, own, WS_A="4") == (
        "#define WS_A 4\n\nvoid f(\n        int a)\n{\n    // why\n\n"
        "    for (int i = 0; i < WS_A; ++i) {\n        g(a,\n          1);\n    }\n}\n"
    )


def test_parameters_of_the_users_stay_defined() -> None:
    assert published("#if N > 3\nint a[N];\n#endif\n", N="4") == "#define N 4\n\nint a[N];\n"
    assert published("#if N > 3\nint a;\n#endif\nint b;\n", N="2") == "#define N 2\n\nint b;\n"
