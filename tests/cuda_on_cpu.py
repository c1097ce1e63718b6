"""Runs CUDA text on the CPU: what a template computes, in several configurations, on machines without a GPU.

The text is compiled with g++ behind `cuda_on_cpu.h`. Buffers lie between guards, so a write beside one shows.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from testbed.deadlines import HANGS_S
from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.templates.template import Template

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
GUARD = 64
"""Elements before and after every buffer."""
_TYPES = {"float32": "float", "int32": "int", "int64": "int64_t", "uint32": "uint32_t", "float64": "double"}


def results(
    job: Job, templates: Sequence[tuple[Template, Mapping[str, int]]], folder: Path
) -> list[dict[str, np.ndarray]]:
    """Every buffer after a launch of each configuration for the job's first workload, guards included.

    Raises:
        AssertionError: the text does not compile, or a launch does not end.
    """
    workload = job.workloads[0]
    parts, calls = [], []
    for n, (template, values) in enumerate(templates):
        configured = template.configured(values)
        includes = r'(?m)^[ \t]*#[ \t]*include[ \t]*[<"][^\n]*$'
        text = re.sub(includes, "", configured.source)
        text = re.sub(r'extern\s+"C"\s+', "", text)
        text = re.sub(r"\bstatic\s+__shared__", "__shared__", text)
        text = re.sub(r"extern\s+__shared__\s+([^;\[]*)\[\s*\]", r"__shared__ \1[65536]", text)
        names = re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)", text)
        undefined = "\n".join(f"#undef {name}" for name in dict.fromkeys(names))
        parts.append(f"namespace config_{n} {{\n{text}\n}}\n{undefined}\n")
        calls.append(_call(n, template, configured.kernel.entry, workload, values))
    program = f'#include "{_precompiled()}"\n' + "".join(parts) + "int main() {\n" + "".join(calls) + "}\n"
    source, binary = folder / "program.cpp", folder / "program"
    source.write_text(program)
    _compile("-o", str(binary), str(source))
    ran = subprocess.run([str(binary)], capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert ran.returncode == 0, f"status {ran.returncode}"
    return [{k: np.array(v) for k, v in json.loads(line).items()} for line in ran.stdout.splitlines()]


def _compile(*arguments: str) -> None:
    built = subprocess.run(
        ["g++", "-std=c++17", "-O0", "-w", *arguments],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr[:3000]


@cache
def _precompiled() -> Path:
    """A copy of the header beside what g++ has read of it: that is most of what a program costs."""
    copy = Path(tempfile.mkdtemp()) / HEADER.name
    shutil.copyfile(HEADER, copy)
    _compile("-x", "c++-header", str(copy), "-o", f"{copy}.gch")
    return copy


def _call(n: int, template: Template, entry: str, workload: Workload, values: Mapping[str, int]) -> str:
    scope = {**workload.scope(), **values}
    lines, given, shown = [], [], []
    for a in template.kernel.arguments:
        if a.value is not None:
            given.append(f"({_TYPES[a.dtype.value]}){a.value.evaluate(scope)}")
            continue
        count = int(np.prod([int(e.evaluate(scope)) for e in a.shape]))
        kind, total = _TYPES[a.dtype.value], count + 2 * GUARD
        lines.append(f"static std::vector<{kind}> {a.name}({total});")
        lines.append(f"for (int i = 0; i < {total}; ++i) {a.name}[i] = {_drawn(a)};")
        given.append(f"{a.name}.data() + {GUARD}")
        shown.append(a.name)
    for a in template.kernel.symbols:
        count = int(np.prod([int(e.evaluate(scope)) for e in a.shape]))
        kind, at = _TYPES[a.dtype.value], f"(({_TYPES[a.dtype.value]}*)&config_{n}::{a.name})"
        lines.append(f"static_assert(sizeof(config_{n}::{a.name}) == {count} * sizeof({kind}));")
        lines.append(f"for (int i = 0; i < {count}; ++i) {at}[i] = {_drawn(a)};")
    grid, block = (
        "{" + ", ".join(f"unsigned({int(e.evaluate(scope))})" for e in extents) + "}"
        for extents in (template.kernel.launch.grid, template.kernel.launch.block)
    )
    lines.append(
        f"cpu::launch({grid}, {block}, [&] {{ using namespace config_{n}; {entry}({', '.join(given)}); }});"
    )
    for k, name in enumerate(shown):
        lines.append(f'printf("{"," if k else "{"}\\"{name}\\": [");')
        lines.append(
            f'for (size_t i = 0; i < {name}.size(); ++i) printf(i ? ",%.9g" : "%.9g", (double){name}[i]);'
        )
        lines.append('printf("]");')
    lines.append('printf("}\\n");')
    return "{\n" + "\n".join(lines) + "\n}\n"


def _drawn(argument: Argument) -> str:
    """Values that differ between elements; outputs begin with one that no kernel writes."""
    if argument.role.value == "output":
        return "-77"
    return f"(i * {37 + len(argument.name)} % 101) / 16.0 - 3"
