"""Small kernels of several kinds, written in the styles that people write, for both back ends.

A kind says what is computed; a style says how declarations are written; a finish rewrites the whole text
(minified, one token a line, tabs, other line ends). Every combination is a valid kernel.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from testbed.kernels.kernel_kinds import KINDS, Kind
from testbed.repetitions import share
from warpsmith.domain.jobs.job import Job

BACKENDS = ("opencl", "cuda")


@dataclass(frozen=True)
class Style:
    """How declarations are written. Words: `<g>` address space, `<t>` element type, `<n>` name."""

    name: str
    reads: str
    """A buffer that is only read."""
    writes: str
    """A buffer that may be written."""
    scalar: str = "int <n>"
    head: str = ""
    """Before the kernel."""
    between: str = ", "
    """Of two parameters."""


STYLES = (
    Style("star at the name", "<g> const <t> *<n>", "<g> <t> *<n>"),
    Style("star at the type", "<g> const <t>* <n>", "<g> <t>* <n>", "const int <n>"),
    Style("star alone", "<g> <t> * <n>", "<g> <t> * <n>"),
    Style("no blank", "<g> <t>*<n>", "<g> <t>*<n>", between=","),
    Style("const after the type", "<g> <t> const *<n>", "<g> <t> *<n>", "int const <n>"),
    Style("const before the space", "const <g> <t> *const <n>", "<g> <t> *const <n>", "const int <n>"),
    Style("brackets", "<g> const <t> <n>[]", "<g> <t> <n>[]"),
    Style("some are restrict", "<g> const <t> *<restrict> <n>", "<g> <t> *<n>"),
    Style("all are restrict", "<g> const <t> *<restrict> <n>", "<g> <t> *<restrict> <n>"),
    Style("a macro for the type", "<g> DATA_TYPE *<n>", "<g> DATA_TYPE *<n>", head="#define DATA_TYPE <t>\n"),
    Style("a typedef for the type", "<g> real *<n>", "<g> real *<n>", head="typedef <t> real;\n"),
    Style(
        "a typedef for the pointer",
        "vector_in <n>",
        "vector <n>",
        head="typedef <g> <t> *vector;\ntypedef const <g> <t> *vector_in;\n",
    ),
    Style(
        "a macro for the pointer", "BUFFER(<t>) <n>", "BUFFER(<t>) <n>", head="#define BUFFER(T) <g> T *\n"
    ),
    Style(
        "a macro for the qualifiers",
        "IN <t> *<n>",
        "OUT <t> *<n>",
        "VALUE <n>",
        head="#define IN <g> const\n#define OUT <g>\n#define VALUE const int\n",
    ),
    Style(
        "comments in the declaration",
        "<g>/*in*/const/**/<t>/* elements\n  */*/*pointer*/<n>/*!*/",
        "<g> <t> // elements\n  *<n> // out",
        "int /* how many */ <n>",
        between="\n  , // next\n  ",
    ),
    Style("a line each", "<g>\n\tconst <t>\n\t*\n\t<n>", "<g> <t> *\n<n>", "int\n<n>", between=",\n\n"),
    Style("volatile", "<g> const volatile <t> *<n>", "<g> volatile <t> *<n>", "const int <n>"),
    Style("unsigned counts", "<g> const <t> *<n>", "<g> <t> *<n>", "const unsigned int <n>"),
    Style("unsigned alone", "<g> const <t> *<n>", "<g> <t> *<n>", "unsigned <n>"),
)

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"[^"]*"|\w[\w.]*(?:(?<=[eE])[+-]\w+)?|\.\d\w*|[-+*/%&|^<>=!]=|<<=?|>>=?|&&|\|\||\+\+|--|->|\S',
    re.S,
)


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Runs of code and single directives, the latter as they stand."""
    code = ""
    for line in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n?", text):
        if line.lstrip().startswith("#"):
            yield False, code
            yield True, line
            code = ""
        else:
            code += line
    yield False, code


def _respaced(text: str, join: Callable[[list[str]], str]) -> str:
    made = ""
    for directive, part in _lines(text):
        tokens = [t for t in _TOKEN.findall(part) if not t.startswith(("//", "/*"))]
        made += part if directive else join(tokens) + "\n" if tokens else ""
    return made


def _minified(tokens: list[str]) -> str:
    made = ""
    for token in tokens:
        words = re.match(r"[\w.]", token) and re.search(r"[\w.\"]$", made)
        made += " " + token if words or made[-1:] + token[:1] in ("++", "--", "/*", "//") else token
    return made


FINISHES: dict[str, Callable[[str], str]] = {
    "as written": lambda text: text,
    "minified": lambda text: _respaced(text, _minified),
    "a token a line": lambda text: _respaced(text, "\n".join),
    "comments everywhere": lambda text: _respaced(text, " /* ' } */ ".join),
    "tabs": lambda text: text.replace("  ", "\t").replace(" *", "\t*"),
    "other line ends": lambda text: text.replace("\n", "\r\n"),
    "a remark a line": lambda text: re.sub(r"(?<=[;{}])\n", " // it's so: x[i]; {\n", text),
}


@dataclass(frozen=True)
class Written:
    """A kernel of a kind, written in one style."""

    kind: Kind
    style: Style
    finish: str
    backend: str
    job: Job = field(compare=False)

    @property
    def label(self) -> str:
        """For messages of tests."""
        return f"{self.backend}: {self.kind.name}, {self.style.name}, {self.finish}"


@cache
def written(kind: Kind, style: Style, finish: str, backend: str) -> Written:
    """The job of a kernel in a style; the launch is the kind's."""
    source = FINISHES[finish](_source(kind, style, backend))
    fields = {
        "name": "corpus",
        "kernel": {
            "backend": backend,
            "source": source,
            "entry": "corpus",
            "arguments": list(kind.arguments),
            "launch": {"grid": list(kind.grid), "block": list(kind.block)},
        },
        "workloads": [{"dimensions": d} for d in kind.workloads],
        "reference": {"kind": "numpy", "source": kind.reference},
    }
    return Written(kind, style, finish, backend, Job.model_validate(fields))


def fits(kind: Kind, style: Style) -> bool:
    """A pointer to floats takes no address of volatile ones."""
    return "volatile" not in style.writes or "*from" not in kind.body


def corpus(backend: str, share: int = 4) -> Iterator[Written]:
    """Every style for one kind in `share`, and every finish for every kind; the rest rotates."""
    finishes = list(FINISHES)
    for s, style in enumerate(STYLES):
        for k, kind in enumerate(KINDS):
            if (k + s) % share == 0 and fits(kind, style):
                yield written(kind, style, finishes[(k // share + s) % len(finishes)], backend)
    for f, finish in enumerate(finishes):
        for k, kind in enumerate(KINDS):
            style = STYLES[(3 * k + f) % len(STYLES)]
            yield written(kind, style if fits(kind, style) else STYLES[0], finish, backend)


def chosen_corpus(backend: str) -> Sequence[Written]:
    """The corpus at night; in the gate a share with every kind, style and finish."""
    return share(corpus(backend), lambda w: (w.kind.name, w.style.name, w.finish))


_WORDS = {
    "opencl": {
        **{f"<gid.{a}>": f"get_global_id({n})" for n, a in enumerate("xy")},
        **{f"<tid.{a}>": f"get_local_id({n})" for n, a in enumerate("xy")},
        **{f"<bid.{a}>": f"get_group_id({n})" for n, a in enumerate("xy")},
        **{f"<size.{a}>": f"get_local_size({n})" for n, a in enumerate("xy")},
        **{f"<all.{a}>": f"get_global_size({n})" for n, a in enumerate("xy")},
        "<shared>": "__local",
        "<sync>": "barrier(CLK_LOCAL_MEM_FENCE)",
        "<f>": "",
        "<g>": "__global",
        "<kernel>": "__kernel void",
        "<restrict>": "restrict",
        "<inline>": "inline",
    },
    "cuda": {
        **{f"<gid.{a}>": f"blockIdx.{a} * blockDim.{a} + threadIdx.{a}" for a in "xy"},
        **{f"<tid.{a}>": f"threadIdx.{a}" for a in "xy"},
        **{f"<bid.{a}>": f"blockIdx.{a}" for a in "xy"},
        **{f"<size.{a}>": f"blockDim.{a}" for a in "xy"},
        **{f"<all.{a}>": f"gridDim.{a} * blockDim.{a}" for a in "xy"},
        "<shared>": "__shared__",
        "<sync>": "__syncthreads()",
        "<f>": "f",
        "<g>": "",
        "<kernel>": 'extern "C" __global__ void',
        "<restrict>": "__restrict__",
        "<inline>": "static __device__ inline",
    },
}


def _source(kind: Kind, style: Style, backend: str) -> str:
    listed = []
    for argument in kind.arguments:
        role = argument["role"]
        form = {"input": style.reads, "scalar": style.scalar}.get(str(role), style.writes)
        dtype = "float" if argument["dtype"] == "float32" else kind.element
        if argument["dtype"] == "float32" and role == "scalar":
            form = "float <n>"
        listed.append(form.replace("<t>", dtype).replace("<n>", str(argument["name"])))
    text = style.head.replace("<t>", kind.element) + kind.head
    text += f"<kernel> corpus({style.between.join(listed)})\n{kind.body}"
    for word, meaning in _WORDS[backend].items():
        text = text.replace(word, meaning)
    return text
