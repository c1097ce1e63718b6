"""How well kernels of real code are read: find_kernels and job_skeleton against a second reading.

    python -m benchmarks.parse_corpus --root FOLDER [--corpus-commit SHA] [--out FILE] [--sample 40]

Every .cu, .cuh, .h, .hpp, .inl, .hip and .cl file under FOLDER is read. What is true comes from the
scanner in this file, which shares no code with the package and knows no grammar:

1. a loop over characters blanks comments and strings (raw ones too); macro definitions are blanked whole;
2. each `__global__` left starts a kernel when a `{` comes before a `;` outside parentheses; the name is
   the word before the last parenthesis opened outside brackets, attributes with parentheses removed;
3. conditional lines inside the header count as if no macro were defined;
4. the text in the parentheses is split at commas outside brackets; what follows `=` is dropped, and the
   last word of what is left is the name, the rest the type, attributes and `restrict` words removed.

A kernel is found when file, line and name agree; its arguments are right when names and types agree (types
compared without white space). `--sample` prints random kernels of the second reading with their source,
to be checked by eye. Then every kernel found gets a skeleton. It must load as YAML and be
a valid job, at once or when every `TODO` in the place of a type is filled in with one. Kernels without any
pointer (all they take is structs by value) are counted apart: a job has nothing to compare there.
"""

import argparse
import datetime
import json
import random
import re
import shlex
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from warpsmith.errors import InvalidInput
from warpsmith.jobfile import parse_job
from warpsmith.rewrite.reader.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.rewrite.skeleton.job_file import job_skeleton

ENDINGS = (".cu", ".cuh", ".h", ".hpp", ".inl", ".hip", ".cl")
ATTRIBUTE = re.compile(
    r"__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__|__attribute__|alignas|__align__"
)
WORDS = re.compile(r"\b(?:__restrict__|__restrict|restrict|__grid_constant__|CUTE_GRID_CONSTANT)\b")
LONGEST_HEADER = 8_000
ALONE = frozenset(
    (
        "void",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "half",
        "unsigned",
        "signed",
        "uint32_t",
        "int32_t",
    )
)


@dataclass(frozen=True)
class Truth:
    """A kernel as the scanner of this file reads it."""

    file: str
    line: int
    name: str
    arguments: tuple[tuple[str, str], ...]
    """Name and type without white space."""
    source: str


def stripped(text: str) -> str:
    """`text` with comments, strings and macro definitions as spaces."""
    out, at, mode = list(text), 0, ""
    while at < len(text):
        two = text[at : at + 2]
        if not mode and two == 'R"':
            mark = text[at + 2 : text.index("(", at)]
            end = text.find(f'){mark}"', at) % (len(text) + 1)
            out[at:end] = [c if c == "\n" else " " for c in text[at:end]]
            at = end + len(mark) + 2
            continue
        if not mode and two in ("//", "/*"):
            mode = two
        elif not mode and text[at] == '"':
            mode = '"'
            at += 1
            continue
        ends = (mode == "//" and text[at] == "\n" and text[at - 1] != "\\") or (
            mode == '"' and text[at] in '"\n' and text[at - 1] != "\\"
        )
        if ends:
            mode = ""
        elif mode == "/*" and two == "*/":
            out[at] = out[at + 1] = " "
            at, mode = at + 2, ""
            continue
        elif mode and text[at] != "\n":
            out[at] = " "
        at += 1
    lines = "".join(out).split("\n")
    in_macro = False
    for n, line in enumerate(lines):
        in_macro = in_macro or line.lstrip().startswith("#define")
        if in_macro:
            in_macro = line.rstrip().endswith("\\")
            lines[n] = " " * len(line)
    return "\n".join(lines)


def without_branches(header: str) -> str:
    """A header as the preprocessor leaves it when no macro is defined."""
    out: list[str] = []
    states: list[bool] = []
    for line in header.split("\n"):
        word = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)", line)
        if word is None:
            keep = all(states) and not line.lstrip().startswith("#")
            out.append(line if keep else " " * len(line))
            continue
        out.append(" " * len(line))
        kind, condition = word.group(1), word.group(2)
        if kind in ("if", "ifdef", "ifndef"):
            states.append(kind == "ifndef" or condition.startswith("!") or condition.strip() == "1")
        elif kind == "else" and states:
            states[-1] = not states[-1]
        elif kind == "endif" and states:
            states.pop()
    return "\n".join(out)


def outside(text: str, wanted: str) -> list[int]:
    """Places of the characters `wanted` outside brackets of any kind."""
    found, depth = [], 0
    for at, c in enumerate(text):
        if depth == 0 and c in wanted:
            found.append(at)
        arrow = c == ">" and text[at - 1 : at] == "-"
        depth += (c in "(<[{") - (c in ")>]}" and not arrow)
        depth = max(depth, 0)
    return found


def split_argument(text: str) -> tuple[str, str] | None:
    """Name and type of one argument."""
    equals = outside(text, "=")
    text = WORDS.sub(" ", text[: equals[0]] if equals else text).strip()
    text = re.sub(r"\[\[.*?\]\]", " ", text)
    if text in ("", "void"):
        return None
    named = re.match(r"(?s)(.*[\s*&>.])([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$", text)
    if named is None or named.group(2) in ALONE or named.group(1).strip() in ("const", "typename"):
        return "", re.sub(r"\s", "", text)
    return named.group(2), re.sub(r"\s", "", named.group(1) + named.group(3))


def header_end(text: str) -> int | None:
    """Where the body starts; None for a declaration."""
    depth = 0
    for n in range(len(text)):
        depth += (text[n] == "(") - (text[n] == ")")
        if depth == 0 and text[n] in ";{":
            return n if text[n] == "{" else None
    return None


def true_kernels(path: Path, root: Path) -> list[Truth]:
    """The scanner's reading of one file."""
    text = path.read_text(errors="replace")
    clean = stripped(text)
    marker = r"\b(?:__kernel|kernel)\b" if path.suffix == ".cl" else r"\b__global__\b"
    found = []
    for match in re.finditer(marker, clean):
        after = without_branches(clean[match.end() : match.end() + LONGEST_HEADER])
        end = header_end(after)
        if end is None:
            continue
        header = blank_attributes(after[:end])
        opened = [n for n in outside(header, "(") if re.search(r"[\w>]\s*$", header[:n])]
        if not opened:
            continue
        before = re.sub(r"<[^()]*>\s*$", lambda m: " " * len(m.group()), header[: opened[-1]])
        name = re.search(r"(\w+)\s*$", before)
        if name is None:
            continue
        close = header.rindex(")")
        inner = header[opened[-1] + 1 : close]
        commas = [-1, *outside(inner, ","), len(inner)]
        parts = [inner[a + 1 : b] for a, b in pairwise(commas)]
        line = clean.count("\n", 0, match.end() + name.start(1)) + 1
        arguments = tuple(a for a in map(split_argument, parts) if a is not None)
        shown = text[max(0, match.start() - 120) : match.end() + end + 1]
        found.append(Truth(str(path.relative_to(root)), line, name.group(1), arguments, shown))
    return found


def blank_attributes(header: str) -> str:
    """A header with attributes that have parentheses as spaces."""
    for match in ATTRIBUTE.finditer(header):
        depth, at = 0, header.find("(", match.end())
        for n in range(at, len(header)):
            depth += (header[n] == "(") - (header[n] == ")")
            if depth == 0:
                header = header[: match.start()] + " " * (n + 1 - match.start()) + header[n + 1 :]
                break
    return header


def compare(truth: Truth, kernel: KernelDefinition) -> list[str]:
    """What differs in the arguments."""
    got = tuple((a.name, re.sub(r"\s", "", a.type_text)) for a in kernel.arguments)
    if len(got) != len(truth.arguments):
        return [f"{len(got)} arguments, not {len(truth.arguments)}: {got} / {truth.arguments}"]
    return [f"{g} not {t}" for g, t in zip(got, truth.arguments, strict=True) if g != t]


def check_skeleton(text: str, path: Path, kernel: KernelDefinition) -> str:
    """One of `VERDICTS`, or what is wrong."""
    try:
        skeleton = job_skeleton(text, path.name, dialect(path), kernel.qualified_name)
        data = yaml.safe_load(skeleton)
    except InvalidInput as exc:
        return f"refused: {exc}"
    except yaml.YAMLError as exc:
        return f"not YAML: {exc}"
    arguments = data["kernel"]["arguments"]
    blanks = [a for a in arguments if a["dtype"] == "TODO"]
    problem = problem_of(data)
    if not problem:
        return "a blank that counts as valid" if blanks else "valid"
    for blank in blanks:
        blank["dtype"] = "int32"
    if blanks and not problem_of(data):
        return "valid once filled in"
    buffers = [a for a in arguments if "shape" in a]
    if not buffers:
        return "nothing a job could compare"
    if "needs the role output or inout" in skeleton:
        buffers[-1]["role"] = "inout"
    return problem_of(data) or "valid once filled in"


VERDICTS = ("valid", "valid once filled in", "nothing a job could compare")


def problem_of(data: dict[str, Any]) -> str:
    """What is wrong with a job; empty when nothing is."""
    try:
        parse_job(data)
    except InvalidInput as exc:
        return str(exc)
    return ""


def dialect(path: Path) -> Dialect:
    """The language of a file, by its ending."""
    return {".cl": Dialect.OPENCL, ".hip": Dialect.HIP}.get(path.suffix, Dialect.CUDA)


def show_sample(truths: list[Truth], count: int, seed: int) -> None:
    """Random kernels of the second reading, beside their source."""
    for truth in random.Random(seed).sample(truths, min(count, len(truths))):
        print(f"=== {truth.file}:{truth.line} {truth.name}\n{truth.source}")
        print("\n".join(f"    {name or '(no name)'}: {kind}" for name, kind in truth.arguments))


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--corpus-commit", default="")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = sorted(p for p in options.root.rglob("*") if p.suffix in ENDINGS)
    truths: list[Truth] = []
    disagreements: list[tuple[str, str]] = []
    found = right = total_found = 0
    skeletons: Counter[str] = Counter()
    parse_s = 0.0
    for path in files:
        text = path.read_text(errors="replace")
        here = true_kernels(path, options.root)
        truths += here
        began = time.monotonic()
        kernels = find_kernels(text, dialect(path))
        parse_s += time.monotonic() - began
        total_found += len(kernels)
        by_place = {(k.line, k.name): k for k in kernels}
        for truth in here:
            kernel = by_place.pop((truth.line, truth.name), None)
            found += kernel is not None
            problems = ["not found"] if kernel is None else compare(truth, kernel)
            right += not problems
            disagreements += [(f"{truth.file}:{truth.line}", p) for p in problems]
        for kernel in by_place.values():
            where = f"{path.relative_to(options.root)}:{kernel.line}"
            disagreements.append((where, f"{kernel.name}: only find_kernels sees it"))
        for kernel in kernels:
            verdict = check_skeleton(text, path, kernel)
            skeletons[verdict if verdict in VERDICTS else "wrong"] += 1
            if verdict not in VERDICTS:
                print(f"skeleton {path}:{kernel.line} {kernel.name}: {verdict}")
    for where, problem in disagreements:
        print(f"{where}: {problem}")
    record = {
        "what": "kernel definitions found, arguments right, skeletons valid",
        "corpus_commit": options.corpus_commit,
        "command": shlex.join("FOLDER" if a == str(options.root) else a for a in ("python", *sys.argv)),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "files": len(files),
        "kernels_by_second_reading": len(truths),
        "kernels_by_find_kernels": total_found,
        "found": found,
        "arguments_right": right,
        "disagreements": sorted({where for where, _ in disagreements}),
        "skeletons": {k: skeletons[k] for k in (*VERDICTS, "wrong")},
        "parse_s": round(parse_s, 1),
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    show_sample(truths, options.sample, options.seed)


if __name__ == "__main__":
    main()
