"""Configurations, pruning and heuristics of a Triton function, read from its text."""

import ast
from pathlib import Path

import pytest
import yaml

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.triton_function import read_kernels
from warpsmith.extensions.scaffold.python_text.evaluator import NotLiteral
from warpsmith.extensions.triton.jobs.arithmetic import expression_text
from warpsmith.extensions.triton.jobs.autotune import Autotune, read_autotune
from warpsmith.extensions.triton.jobs.pruning import read_heuristics
from warpsmith.extensions.triton.jobs.safe_values import Module
from warpsmith.extensions.triton.scaffold import written

HEADER = "import triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)
"""


def tuned(decorator: str, before: str = "") -> Autotune:
    """What the decorator of a kernel says."""
    text = f"{HEADER}{before}\n{decorator}{KERNEL}"
    return read_autotune(read_kernels(text)[0], Module(ast.parse(text)))


def values(found: Autotune) -> dict[str, tuple[tuple[object, ...], object]]:
    """Values and default of each parameter."""
    return {t.name: (t.values, t.default) for t in found.tunables}


LISTED = "triton.Config({'BLOCK': 256}, num_warps=8), triton.Config({'BLOCK': 64}, num_warps=2)"


@pytest.mark.parametrize(
    ("configs", "before"),
    [
        (f"[{LISTED}]", ""),
        ("CONFIGS", f"CONFIGS = [{LISTED}]"),
        ("configs()", f"def configs():\n    return [{LISTED}]"),
        ("configs()", f"def configs():\n  a = []\n  for c in [{LISTED}]:\n    a.append(c)\n  return a"),
        ("[triton.Config({'BLOCK': b}, num_warps=b // 32) for b in (256, 64)]", ""),
        ("[triton.Config(dict(BLOCK=32 << s), num_warps=1 << s) for s in range(3, 0, -2)]", ""),
        ("FIRST + [triton.Config({**COMMON}, num_warps=2)]",
         "FIRST = [triton.Config({'BLOCK': 2 ** 8}, num_warps=8)]\nCOMMON = {'BLOCK': 64}"),
        ("list(filter(small, ALL))",
         f"ALL = [{LISTED}, triton.Config({{'BLOCK': 4096}}, num_warps=8)]\n"
         "def small(c):\n    if c.kwargs['BLOCK'] > 1024:\n        return False\n    return True"),
    ],
)  # fmt: skip
def test_every_way_to_write_the_list_gives_its_space(configs: str, before: str) -> None:
    found = tuned(f"@triton.autotune(configs={configs}, key=['n'])", before)
    assert values(found) == {"BLOCK": ((64, 256), 256), "num_warps": ((2, 8), 8)}
    assert found.problems == ()


def test_nested_loops_keep_their_conditions_and_the_first_configuration() -> None:
    listed = (
        "[triton.Config({'BLOCK': b, 'WIDE': w}, num_stages=s) for b in [128, 64] for w in [True, False] "
        "for s in range(2, 5) if b * s < 400]"
    )
    found = tuned(f"@triton.autotune({listed}, ['n'])")
    assert values(found) == {
        "BLOCK": ((64, 128), 128),
        "WIDE": ((False, True), True),
        "num_stages": ((2, 3, 4), 2),
    }
    assert found.remarks[0].startswith("the list has 10 of these 12 combinations")


def test_a_list_that_is_the_whole_product_needs_no_remark() -> None:
    assert tuned("@triton.autotune([triton.Config({'BLOCK': b}) for b in [64, 128]], [])").remarks == ()


def test_what_is_not_evaluated_is_said_with_its_line_and_the_rest_is_kept() -> None:
    found = tuned("@triton.autotune(configs=[triton.Config({'BLOCK': 64}),\n  make(3)], key=[])")
    assert values(found) == {"BLOCK": ((64,), 64)}
    assert found.problems == ("line 5: make(3) is not evaluated (a part of the configurations of line 4)",)


@pytest.mark.parametrize(
    "text",
    [
        "[0] * 10 ** 9",
        "2 ** 10 ** 9",
        "'a' * 10 ** 9",
        "[a for a in range(10 ** 12)]",
        "[1 for a in range(9999) for b in range(9999)]",
        "list(itertools.product([1, 2], repeat=60))",
        "forever()",
        "grow()",
        "__import__('os').getcwd()",
        "().__class__",
        "open('x')",
    ],
)
def test_no_text_takes_long_or_runs_anything(text: str) -> None:
    functions = (
        "def forever():\n    return forever()\n"
        "def grow():\n    a = [1]\n    for i in range(100):\n        a.extend(a)\n    return a"
    )
    module = Module(ast.parse(functions))
    with pytest.raises(NotLiteral):
        module.evaluate(ast.parse(text, mode="eval").body)


def test_what_is_reset_or_restored_is_read_and_written() -> None:
    more = "reset_to_zero=['y_ptr'], restore_value=['x_ptr']"
    found = tuned(f"@triton.autotune([triton.Config({{'BLOCK': 64}})], [], {more})")
    assert found.mutated == {"x_ptr", "y_ptr"}


PRUNED = (
    "@triton.autotune([triton.Config({'BLOCK': 64})], [], prune_configs_by={'early_config_prune': prune})"
)
PRUNING = {
    "comprehension": "    return [c for c in configs if c.kwargs['BLOCK'] <= named_args['n']]",
    "loop": """
    kept = []
    n = named_args['n']
    for c in configs:
        block = c.kwargs["BLOCK"]
        if not block <= n:
            continue
        kept.append(c)
    return kept""",
    "append": """
    kept = []
    for c in configs:
        if c.kwargs["BLOCK"] <= kw['n']:
            kept.append(c)
    return kept or configs""",
}


@pytest.mark.parametrize("body", PRUNING.values(), ids=PRUNING)
def test_simple_pruning_becomes_a_condition(body: str) -> None:
    found = tuned(
        PRUNED,
        f"def prune(configs, named_args, **kw):\n{body}",
    )
    [condition] = found.conditions
    for n, allowed in ((63, False), (64, True)):
        text = expression_text(condition.tree)
        assert text is not None and Expression(text).evaluate({"BLOCK": 64, "n": n}) is allowed
    assert found.problems == ()


def test_other_pruning_is_left_to_a_person_with_its_line() -> None:
    found = tuned(
        PRUNED,
        "def prune(configs, named_args):\n    best = rank(configs)\n    return sorted(configs, key=best)",
    )
    assert found.conditions == ()
    assert found.problems == (
        "line 3: write what prune prunes as constraints (line 5 is no arithmetic of parameters)",
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("lambda args: args['n'] % args['BLOCK'] == 0", "n % BLOCK == 0"),
        ("lambda a: triton.next_power_of_2(a['n'])", "next_pow2(n)"),
        ("lambda a: triton.cdiv(a['n'], 4) if a['n'] > 8 else 1", "ceil_div(n, 4) if n > 8 else 1"),
        ("lambda a: look(a)", None),
    ],
)
def test_heuristics_are_arithmetic_or_left_open(text: str, wanted: str | None) -> None:
    whole = f"{HEADER}@triton.heuristics({{'WIDE': {text}}}){KERNEL}"
    [found] = read_heuristics(read_kernels(whole)[0], Module(ast.parse(whole)))
    assert (found.name, expression_text(found.tree), found.line) == ("WIDE", wanted, 3)


HOOKS = {
    "list": "reset_to_zero=['y_ptr']",
    "positional": "None, ['y_ptr']",
    "lambda": "pre_hook=lambda nargs, reset_only=False: nargs['y_ptr'].zero_()",
    "function": "pre_hook=clear",
    "maker": "pre_hook=init_to_zero('y_ptr')",
    "closure": "pre_hook=zeroing('y_ptr')",
}
BEFORE = """
def clear(args, **kw):
    args["y_ptr"].fill_(0)
def init_to_zero(name):
    return lambda nargs: nargs[name].zero_()
def zeroing(name):
    def hook(nargs):
        nargs[name].zero_()
    return hook
"""


@pytest.mark.parametrize("more", HOOKS.values(), ids=HOOKS)
def test_what_is_set_to_zero_before_a_run_is_drawn_as_zero(more: str, tmp_path: Path) -> None:
    source = f"{HEADER}{BEFORE}\n@triton.autotune([triton.Config({{'BLOCK': 64}})], ['n'], {more}){KERNEL}"
    (tmp_path / "k.py").write_text(source)
    data = yaml.safe_load(written(tmp_path / "k.py", tmp_path / "job.yaml", None))
    [y] = [a for a in data["kernel"]["arguments"] if a["name"] == "y_ptr"]
    assert (y["role"], y["draw"]) == ("inout", {"distribution": "constant", "low": 0})


@pytest.mark.parametrize("hook", ["init_to_zero('y_ptr')", "lambda a: a['y_ptr'].zero_()", "None"])
def test_a_configuration_keeps_its_values_beside_its_hook(hook: str) -> None:
    found = tuned(f"@triton.autotune([triton.Config({{'BLOCK': 64}}, pre_hook={hook})], [])", BEFORE)
    assert values(found)["BLOCK"] == ((64,), 64)
    assert found.problems == ()
    assert found.zeroed == (set() if hook == "None" else {"y_ptr"})


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (
            "pre_hook=lambda a: a['y_ptr'].normal_()",
            "the hook lambda a: a['y_ptr'].normal_() is not taken over",
        ),
        ("post_hook=check", "the hook check is not taken over"),
        ("reset_to_zero=names()", "reset_to_zero is not read"),
        ("reset_to_zero=['gone']", "gone, which the decorator resets, is no parameter"),
    ],
)
def test_a_reset_that_is_not_understood_is_named(more: str, word: str) -> None:
    found = tuned(f"@triton.autotune([triton.Config({{'BLOCK': 64}})], [], {more})")
    assert any(word in p for p in found.problems), found.problems
