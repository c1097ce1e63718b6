"""Compile sites: a source with other lines, files and dates, and its PTX without their traces. Pure."""

import re
import secrets
import string
from dataclasses import dataclass, field

NAME = "kernel.cu"
"""The name under which kernels are compiled."""
PROBES = ("__FILE__", "__DATE__", "__TIME__", "__LINE__", "__INCLUDE_LEVEL__")
"""Macros that a site changes. `__FILE__` stands for every macro and builtin with a name of a file."""
NVCC_PROBES = ("__TIMESTAMP__", "__COUNTER__")
"""Macros that nvcc knows besides."""
_LENGTHS = {"__DATE__": 11, "__TIME__": 8, "__TIMESTAMP__": 24}
_SYMBOL = re.sub(r"\W", "_", NAME)
_FAR = 1 << 20
_LONG = "./" * 60
_TOKENS = re.compile(
    r'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*+"|' + r"'(?:\\.|[^'\\\n])*+'"
    r"|/\*.*?\*/|//(?:\\\n|[^\n])*+|\\[ \t]*\n|[()]|\n(?=[ \t]*(#[ \t]*(?:if|el|end)?)?)",
    re.DOTALL,
)
_ASSERTS = re.compile(r"assert|VERIFY|ABORT", re.IGNORECASE)


def _drawn() -> str:
    # As long as the usual name, so that mangled names of both are equally long.
    return "".join(secrets.choice(string.ascii_lowercase) for _ in NAME)


@dataclass(frozen=True)
class CompileSite:
    """Lines, file name and date with which a source is compiled for comparison."""

    words: tuple[str, ...] = ()
    """Members of `PROBES` that have another value here."""
    is_low: bool = False
    """Lines and lengths of names are small, else they are large; conditions hold for the one or the other."""
    token: str = field(default_factory=_drawn)
    """Random name that no source can foresee."""

    def text(self, source: str) -> str:
        """The source with its other lines."""
        if "__LINE__" in self.words:
            source = _renumbered(source) if self.is_low else f"#line {self._far()}\n{source}"
        return source

    def name(self, folder: str) -> str:
        """Path of the source, whose relative includes mean the same files."""
        if "__FILE__" not in self.words:
            return NAME
        return self.token if self.is_low else f"{folder}/{_LONG}{self.token}"

    @property
    def is_included(self) -> bool:
        """True if another file includes the source."""
        return "__INCLUDE_LEVEL__" in self.words and not self.is_low

    def clock(self, now: str) -> str:
        """A text in the form of `asctime`, given that of now.

        The parts of dates that have another value end a string and go on with what is no token. So any use
        of one of them makes a source fail, whatever digits would decide.
        """
        date, time, year = now[4:11], now[11:19], now[20:24]
        if "__DATE__" in self.words:
            broken = self._broken(_LENGTHS["__DATE__"])
            date, year = broken[:7], broken[7:]
        if "__TIME__" in self.words:
            time = self._broken(_LENGTHS["__TIME__"])
        return f"{now[:4]}{date}{time} {year}\n"

    def defined(self, source: str) -> str:
        """The source, for a compiler that takes other definitions of dates; their texts are no tokens."""
        lines = [
            f"#define {word} {self._broken(length).replace(chr(34), '@')}"
            for word, length in _LENGTHS.items()
            if word in self.words
        ]
        if "__COUNTER__" in self.words:
            lines += ["#if __COUNTER__\n#endif"] * (1 if self.is_low else 10)
        return "\n".join((*lines, "#line 1", source))

    def _broken(self, length: int) -> str:
        rest = length - 2
        # Quoted once more it is a string, whose characters are smaller or larger than digits.
        return '"@' + "!" * rest if self.is_low else "~" * rest + '"@'

    def _far(self) -> int:
        # Every line has the other parity.
        return _FAR + 2 * secrets.randbelow(_FAR)


def _renumbered(source: str) -> str:
    """Every line is line 1 as far as a directive may stand before it, which is outside of parentheses.

    Lines with assertions keep different numbers: two that are alike may become one.
    """
    made: list[str] = []
    copied, depth, directive, number = 0, 0, source.lstrip(" \t").startswith("#"), 1

    def before(at: int) -> str:
        nonlocal number
        end = source.find("\n", at)
        number += _ASSERTS.search(source, at, len(source) if end < 0 else end) is not None
        return f"#line {number}\n"

    made.append(before(0))
    for found in _TOKENS.finditer(source):
        what = found[0]
        if what in "()":
            if not directive:
                depth = max(0, depth + (1 if what == "(" else -1))
        elif what == "\n":
            directive = found[2] is not None
            # Parentheses of a part that is not compiled need not match.
            depth = 0 if directive and found[2][-1].isalpha() else depth
            if depth == 0:
                made += [source[copied : found.end()], before(found.end())]
                copied = found.end()
    return "".join([*made, source[copied:]])


_UNIT = re.compile(r"(_INTERNAL_|_GLOBAL__N__)[0-9a-f]{8}(?=_\d)")
"""A hash of the source in names of internal linkage."""
_CALL = re.compile(
    r"\{ // callseq \d+, \d+\n(?:\s*\.reg \.b32 temp_param_reg;\n)?"
    r"(?:\s*\.param \.b\d\d param\d;\n\s*st\.param\.b\d\d\s+\[param\d(?:\+0)?\],\s[^;\n]+;\n)+"
    r"\s*call\.uni\s+__assertfail,\s*\((?:\s*param\d,?)+\s*\);\s*\} // callseq"
)
"""A call and nothing else: what else stood there, the kernel could go on with."""
_LINE = re.compile(r"(st\.param\.b32\s+\[param2(?:\+0)?\],\s+)\d+;")
_FILE = re.compile(r"st\.param\.b64\s+\[param1(?:\+0)?\],\s+(%rd\d+);")
_FUNCTION = re.compile(r"^\{\n.*?^\}$", re.DOTALL | re.MULTILINE)
_ADDRESS = r"mov\.(?:u|b)64\s+(%rd\d+),\s+([\w$]+);\s+cvta\.global\.u64\s+{},\s+\1;"
_TEXT = re.compile(r"^(\.global \.align 1 \.b8 ([\w$]+))\[\d+\] = \{[\d, ]*\};$", re.MULTILINE)


def without_site(ptx: str, place: CompileSite) -> str:
    """PTX of a source at a place as it is everywhere, if the source does not depend on places.

    Left out are the file and the line in calls of a failed assertion, which end the kernel.
    """
    ptx = _UNIT.sub(r"\1", ptx.replace(place.token, _SYMBOL))
    if "__assertfail" not in ptx:
        return ptx
    shown: list[str] = []

    def in_function(function: re.Match[str]) -> str:
        text = function[0]
        calls = _CALL.findall(text)
        registers = [found[1] for call in calls if (found := _FILE.search(call))]
        for register in dict.fromkeys(registers):
            address = re.search(_ADDRESS.format(re.escape(register)), text)
            if address is None or _uses(address[1], text) != 2:
                continue
            if _uses(register, text) == 1 + registers.count(register):
                shown.append(address[2])
        return _CALL.sub(lambda call: _LINE.sub(r"\g<1>LINE;", call[0]), text)

    text = _FUNCTION.sub(in_function, ptx)
    only = {name for name in dict.fromkeys(shown) if _uses(name, text) == 1 + shown.count(name)}
    return _TEXT.sub(lambda found: f"{found[1]}[FILE];" if found[2] in only else found[0], text)


def _uses(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", text))
