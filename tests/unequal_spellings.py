"""Other kernels that look like those of `plain_kernels`: each differs in one detail that changes the result.

They are written by hand, for every detail that a rule might take for granted: where a loop starts and ends,
how far it steps, which element is read, who reads what others have written, what depends on the block.
None has a race: what it computes in its own launch is the same each time. Therefore no barrier is removed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from testbed.kernels.kernel_kinds import Argument, Kind
from testbed.kernels.kernel_styles import STYLES, written
from testbed.kernels.plain_kernels import BASES
from warpsmith.domain.jobs.job import Job

Change = tuple[str, str]
"""What is replaced in the body of a base kernel, everywhere, by what."""


@dataclass(frozen=True)
class Mutant:
    """A base kernel with one detail changed."""

    base: Kind
    changes: tuple[Change, ...]
    written: frozenset[str] = frozenset()
    """Inputs that it writes too."""
    of_launch: bool = False
    """True: its result depends on which thread takes an element or on how many threads there are, and rules
    that deal elements to threads otherwise do not see it. Of its template only the defaults are compared."""
    shows: bool = True
    """False: in its own launch it computes what the base does, and in another launch it would not."""

    @property
    def name(self) -> str:
        """For messages: the base and what was changed."""
        return f"{self.base.name}: {'; '.join(' '.join(new.split()) for _, new in self.changes)}"

    def job(self, backend: str) -> Job:
        """The mutant's job; buffers are longer than the base's, so that all it does is within them."""
        body = self.base.body
        for old, new in self.changes:
            assert old in body, (self.base.name, old)
            body = body.replace(old, new)
        return _job(self.base, backend, body, self.written)

    def unchanged(self, backend: str) -> Job:
        """The base's job with the mutant's arguments."""
        return _job(self.base, backend, self.base.body, self.written)


def _job(base: Kind, backend: str, body: str, also: frozenset[str]) -> Job:
    arguments = tuple(_longer(a, also) for a in base.arguments)
    names = [str(a["name"]) for a in arguments if a["role"] in ("inout", "output")]
    same = ", ".join(f"{name!r}: inputs[{name!r}]" for name in names)
    reference = f"def reference(inputs, dims):\n    return {{{same}}}\n"
    kind = replace(base, name=f"{base.name} {body}", arguments=arguments, body=body, reference=reference)
    return written(kind, STYLES[0], "as written", backend).job


def _longer(argument: Argument, also: frozenset[str]) -> Argument:
    if argument["role"] == "scalar":
        return argument
    first, *others = list(argument["shape"])
    role = "inout" if argument["name"] in also else str(argument["role"])
    longer: Mapping[str, str | list[str]] = {"role": role, "shape": [f"{first} + 64", *others]}
    return {**argument, **longer}


_X = frozenset("x")
_NEAR = "x[row * n + i]"
_LANES = "for (int i = lane; i < n; i += <size.x>) {\n"
_NORM_SUM, _NORM_OUT = f"{_LANES}    float v", f"{_LANES}    y["
_TOP, _EXP, _OUT = (f"{_LANES}    {word}" for word in ("top", "sum", "y["))

_CHANGES: dict[str, tuple[tuple[Change, ...], ...]] = {
    "rms norm": (
        (("x[row * n + i] * scale", "x[row * n + i + 1] * scale"),),
        (("x[row * n + i] * scale", "x[row * (n + 1) + i] * scale"),),
        (("x[row * n + i] * scale", "x[(row + 1) * n + i] * scale"),),
        (("float v = x[row * n + i]", "float v = x[row * n + n - 1 - i] * i"),),
        (("float v = x[row * n + i]", "float v = x[row * n + lane]"),),
        ((_NORM_SUM, _NORM_SUM.replace("i = lane", "i = lane + 1")),),
        ((_NORM_SUM, _NORM_SUM.replace("i < n", "i <= n")),),
        ((_NORM_SUM, _NORM_SUM.replace("i < n", "i < n - 1")),),
        ((_NORM_SUM, _NORM_SUM.replace("+= ", "+= 2 * ")),),
        ((_NORM_OUT, _NORM_OUT.replace("i = lane", "i = lane + 1")),),
        ((_NORM_OUT, _NORM_OUT.replace("i = lane", "i = <size.x> - 1 - lane")), ("w[i]", "w[i] * lane")),
        ((_NORM_OUT, _NORM_OUT.replace("i < n", "i < n - 1")),),
        ((_NORM_OUT, _NORM_OUT.replace("+= ", "+= 2 * ")),),
        (("sum += v * v;", "sum = sum * 0.5f + v * v;"),),
        (("sum += v * v;", "sum += v * v;\n    if (v > 1.0f) break;"),),
        (("sum += v * v;", "sum += v * v;\n    if (v > 1.0f) i += <size.x>;"),),
        (("sum += v * v;", "if (v > 1.0f) continue;\n    sum += v * v;"),),
        (("* w[i];", "* w[i] + lane;"),),
        (("* w[i];", "* w[lane];"),),
        (("* w[i];", "* w[i / 2];"),),
        (("s > 0", "s > 1"),),
        (("part[0] / n", "part[1] / n"),),
    ),
    "softmax": (
        ((_TOP, _TOP.replace("i < n", "i < n / 2")), ("/ sum;", "/ sum + top;")),
        ((_TOP, _TOP.replace("i = lane", "i = lane + 40")), ("/ sum;", "/ sum + top;")),
        ((_EXP, _EXP.replace("i = lane", "i = lane + 1")),),
        ((_EXP, _EXP.replace("i < n", "i <= n")),),
        ((_EXP, _EXP.replace("+= ", "+= 2 * ")),),
        ((_OUT, _OUT.replace("i < n", "i < n - 1")),),
        ((_OUT, _OUT.replace("i = lane", "i = lane + 1")),),
        (("sum += exp<f>(x[row * n + i] - top)", "sum = sum * 0.5f + exp<f>(x[row * n + i] - top)"),),
        (("sum += exp<f>(x[row * n + i] - top)", "sum += exp<f>(x[row * n + i + 1] - top)"),),
        (("sum += exp<f>(x[row * n + i] - top)", "sum += exp<f>(x[row * (n - 1) + i] - top)"),),
        (("- top);\n", "- top);\n    if (sum > 1.0f) break;\n"),),
        (("- top);\n", "- top);\n    if (sum > 1.0f) i += <size.x>;\n"),),
        (("sum += part[k];", "sum += part[k] * k;"),),
        (("sum += part[k];", "sum = sum * 0.5f + part[k];"),),
        (("k < <size.x>; k++) {\n    sum", "k < <size.x> - 1; k++) {\n    sum"),),
        (("k = 0; k < <size.x>; k++) {\n    sum", "k = 1; k < <size.x>; k++) {\n    sum"),),
        (("k++) {\n    sum", "k += 2) {\n    sum"),),
        (("/ sum;", "/ sum + lane;"),),
        (("/ sum;", "/ part[lane];"),),
    ),
    "matrix product": (
        (("k = 0", "k = 1"),),
        (("k < n", "k < n - 1"),),
        (("k < n", "k <= n"),),
        (("k < n", "k < i"),),
        (("k++", "k += 2"),),
        (("x[i * n + k]", "x[i * n + k + 1]"),),
        (("x[i * n + k]", "x[(i + 1) * n + k]"),),
        (("x[i * n + k]", "x[k * n + i]"),),
        (("x[i * n + k]", "x[i * n + k / 2]"),),
        (("x[i * n + k]", "x[i * (n - 1) + k]"),),
        (("z[k * n + j]", "z[j * n + k]"),),
        (("z[k * n + j]", "z[k * n + i]"),),
        (("z[k * n + j]", "z[k * n + j + 1]"),),
        (("z[k * n + j]", "z[k * (n + 1) + j]"),),
        (("z[k * n + j]", "z[k * n + <tid.x>]"),),
        (("sum += x", "sum = sum * 0.5f + x"),),
        (("sum += x", "sum -= x"),),
        (("sum += x[", "if (k == j) continue;\n      sum += x["),),
        (("sum += x[", "if (k == 5) break;\n      sum += x["),),
        (("sum += x[", "if (sum > 1.0f) break;\n      sum += x["),),
        (("sum += x[", "k += i & 1;\n      sum += x["),),
        (("j];\n    }", "j] + k;\n    }"),),
        (("i < n && j < n", "i < n - 1 && j < n"),),
        (("i < n && j < n", "i <= n && j < n"),),
        (("i < n && j < n", "i < n && j <= i"),),
        (("y[i * n + j]", "y[j * n + i]"),),
        (("y[i * n + j] = sum", "y[i * n + j] = sum + <tid.x>"),),
    ),
    "elements of a plane": (
        (("i < h", "i <= h"),),
        (("j < w", "j < w - 1"),),
        (("j < w", "j < i"),),
        (("i < h && j < w", "i < h"),),
        (("x[i * w + j]", "x[i * w + j + 1]"),),
        (("x[i * w + j]", "x[j * h + i]"),),
        (("x[i * w + j]", "x[i * (w + 1) + j]"),),
        (("y[i * w + j]", "y[j * h + i]"),),
        (("y[i * w + j]", "y[i * w + w - 1 - j]"),),
        (("0.1f * v", "0.1f * v + <tid.x>"),),
        (("0.1f * v", "0.1f * v + <size.y>"),),
        (("0.1f * v", "0.1f * v + <bid.x>"),),
    ),
    "stencil": (
        (("i > 0", "i > 1"),),
        (("i > 0", "<tid.y> > 0"),),
        (("i < h - 1", "i < h"),),
        (("j < w - 1", "j < w"),),
        (("j < w - 1", "j < i"),),
        (("x[i * w + j - 1]", "x[i * w + j]"),),
        (("x[i * w + j + 1]", "x[i * w + j + 2]"),),
        (("x[i * w + j + 1]", "x[i * w + w - j]"),),
        (("x[(i - 1) * w + j]", "x[(i - 1) * w + j - 1]"),),
        (("x[(i - 1) * w + j]", "x[(i - 1) * h + j]"),),
        (("x[(i - 1) * w + j]", "x[(i - 1) * w + <tid.x>]"),),
        (("x[(i + 1) * w + j]", "x[(i + 2) * w + j]"),),
        (("x[(i + 1) * w + j]", "x[(i + 1) * w + j / 2]"),),
        (("x[(i + 1) * w + j]", "x[(i + 1) * (w + 1) + j]"),),
        (("* 0.25f", "* 0.25f + <tid.x>"),),
        (("y[i * w + j]", "y[i * w + j + 1]"),),
    ),
    "grid stride": (
        (("i = <gid.x>", "i = <gid.x> + 1"),),
        (("i < n", "i < n - 1"),),
        (("i < n", "i <= n"),),
        (("x[i]", "x[i + 1]"),),
        (("x[i]", "x[i / 2]"),),
        (("x[i]", "x[n - 1 - i]"),),
        (("x[i]", "x[<tid.x>]"),),
        (("exp<f>(-v));", "exp<f>(-v)) + <tid.x>;"),),
        (("exp<f>(-v));", "exp<f>(-v)) + <all.x>;"),),
        (("exp<f>(-v));", "exp<f>(-v)) + i % 3;"),),
        (("y[i] =", "y[i + 1] ="),),
    ),
    "sums of rows": (
        (("j = 0", "j = 1"),),
        (("j < n", "j < n - 1"),),
        (("j < n", "j <= n"),),
        (("j < n", "j < i"),),
        (("j++", "j += 2"),),
        (("i < r", "i < r - 1"),),
        (("i < r", "i <= r"),),
        (("x[i * n + j]", "x[i * n + j + 1]"),),
        (("x[i * n + j]", "x[i * (n + 1) + j]"),),
        (("x[i * n + j]", "x[j * r + i]"),),
        (("x[i * n + j]", "x[i * n + n - 1 - j] * j"),),
        (("x[i * n + j]", "x[<tid.x> * n + j] * <bid.x>"),),
        (("sum += ", "sum = sum * 0.5f + "),),
        (("sum += ", "sum = 0.25f - sum + "),),
        (("j];\n    }", "j];\n      if (sum > 0.5f) break;\n    }"),),
        (("j];\n    }", "j];\n      if (sum > 0.5f) j++;\n    }"),),
        (("j];\n    }", "j];\n      if (sum > 0.5f) n = j;\n    }"),),
        (("y[i] = sum", "y[i + 1] = sum"),),
        (("y[i] = sum", "y[r - 1 - i] = sum"),),
        (("y[i] = sum", "y[i] = sum + <tid.x>"),),
    ),
    "gather": (
        (("x[from * n + i]", "x[from * n + i + 1]"),),
        (("x[from * n + i]", "x[(from + 1) * n + i]"),),
        (("x[from * n + i]", "x[from * (n - 1) + i]"),),
        (("x[from * n + i]", "x[from * n + i / 2]"),),
        (("x[from * n + i]", "x[from * n + n - 1 - i]"),),
        (("x[from * n + i]", "x[from * n + i] + <tid.x>"),),
        (("x[from * n + i]", "x[from * n + i] + <size.x>"),),
        (("y[row * n + i]", "from = (from + 1) % 128;\n    y[row * n + i]"),),
        (("index[row]", "index[row + 1]"),),
        (("index[row]", "index[<tid.x> % 3]"),),
        (("i = <tid.x>", "i = <tid.x> + 1"),),
        (("i < n", "i < n - 1"),),
        (("+= ", "+= 2 * "),),
        (
            (
                "= x[from * n + i]",
                "= x[from * n + i] + (i < <size.x> ? 0.0f : y[row * n + i - <size.x>])",
            ),
        ),
        (("i];\n  }", "i];\n    if (x[from * n + i] > 1.0f) break;\n  }"),),
        (("i];\n  }", "i];\n    if (x[from * n + i] > 1.0f) i += <size.x>;\n  }"),),
        (
            ("int from", "float last = 0.0f;\n  int from"),
            ("i];\n  }", "i] + last;\n    last = x[from * n + i];\n  }"),
        ),
    ),
}
_WRITING: dict[str, tuple[tuple[Change, ...], ...]] = {
    "rms norm": ((("sum += v * v;", "sum += v * v;\n    x[row * n + i] = v + 1.0f;"),),),
    "softmax": (
        (("- top);\n", "- top);\n    x[row * n + i] = 0.5f;\n"),),
        (("- top) / sum;", "- top) / sum;\n    x[row * n + i] = sum;"),),
    ),
    "elements of a plane": ((("float v", "x[i * w + j] += 1.0f;\n    float v"),),),
    "grid stride": ((("float v", "x[i] += 1.0f;\n    float v"),),),
    "sums of rows": (
        (("j < n", "j < n - 1"), ("j];\n    }", "j];\n      x[i * n + j + 1] += x[i * n + j];\n    }")),
        (("j = 0", "j = 1"), ("j];\n    }", "j];\n      x[i * n + j - 1] = sum;\n    }")),
        (("j = 0", "j = 1"), ("sum += x[i * n + j]", "x[i * n + j] += x[i * n + j - 1]")),
    ),
}
"""They write `x`, each thread only what no other reads."""
_UNSHOWN: dict[str, tuple[tuple[Change, ...], ...]] = {
    "grid stride": (
        (("+= <all.x>", "+= 2 * <all.x>"),),
        (("+= <all.x>", "+= <size.x>"),),
        (("exp<f>(-v));", "exp<f>(-v));\n    if (v > 1.0f) break;"),),
        (("exp<f>(-v));", "exp<f>(-v));\n    if (v > 1.0f) i += <all.x>;"),),
        (
            ("for (int", "float last = 0.0f;\n  for (int"),
            ("exp<f>(-v));", "exp<f>(-v)) + last;\n    last = v;"),
        ),
    ),
}


_OF_LAUNCH = frozenset(
    (
        "s > 1",
        "part[1] / n",
        _EXP.replace("+= ", "+= 2 * "),
        "sum = sum * 0.5f + exp<f>(x[row * n + i] - top)",
        "- top);\n    if (sum > 1.0f) break;\n",
        "- top);\n    if (sum > 1.0f) i += <size.x>;\n",
        "sum += part[k] * k;",
        "sum = sum * 0.5f + part[k];",
        "k < <size.x> - 1; k++) {\n    sum",
        "k = 1; k < <size.x>; k++) {\n    sum",
        "k += 2) {\n    sum",
        "/ sum + lane;",
        "/ part[lane];",
        "y[i * n + j] = sum + <tid.x>",
        "z[k * n + <tid.x>]",
        "0.1f * v + <tid.x>",
        "0.1f * v + <size.y>",
        "0.1f * v + <bid.x>",
        "<tid.y> > 0",
        "x[(i - 1) * w + <tid.x>]",
        "* 0.25f + <tid.x>",
        "x[<tid.x>]",
        "exp<f>(-v)) + <tid.x>;",
        "exp<f>(-v)) + <all.x>;",
        "x[<tid.x> * n + j] * <bid.x>",
        "y[i] = sum + <tid.x>",
        "x[from * n + i] + <tid.x>",
        "x[from * n + i] + <size.x>",
        "from = (from + 1) % 128;\n    y[row * n + i]",
        "index[<tid.x> % 3]",
        "+= 2 * ",
        "= x[from * n + i] + (i < <size.x> ? 0.0f : y[row * n + i - <size.x>])",
        "i];\n    if (x[from * n + i] > 1.0f) break;\n  }",
        "i];\n    if (x[from * n + i] > 1.0f) i += <size.x>;\n  }",
        "i] + last;\n    last = x[from * n + i];\n  }",
    )
)
"""What makes a mutant depend on its launch (`Mutant.of_launch`)."""


def mutants(base: Kind) -> Iterator[Mutant]:
    """All of a base kernel."""
    for changes in _CHANGES[base.name]:
        yield Mutant(base, changes, of_launch=any(new in _OF_LAUNCH for _, new in changes))
    yield from (Mutant(base, changes, _X) for changes in _WRITING.get(base.name, ()))
    yield from (Mutant(base, changes, shows=False) for changes in _UNSHOWN.get(base.name, ()))


MUTANTS: tuple[Mutant, ...] = tuple(m for base in BASES for m in mutants(base))
