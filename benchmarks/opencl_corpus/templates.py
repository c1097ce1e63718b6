"""What the rules make of kernels that others wrote: does the template's default compile, and is it right?

    python -m benchmarks.opencl_corpus.templates --checkouts FOLDER [--mirrors FOLDER] [--out FOLDER]

Of every kernel that compiles as it is: the rules that apply, the parameters they make, whether the
template with its defaults compiles, and on how many of a few configurations it does what the kernel does.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from benchmarks.opencl_corpus.kernels import Found, find
from benchmarks.opencl_corpus.sources import PROJECTS, fetch
from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.argument import Role
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job
from warpsmith.domain.launch_size import launch_size
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.search import enumerate_space
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts
from warpsmith.tuning.session.session_ports import Case
from warpsmith.tuning.session.unwritten import UNWRITTEN

PLAIN = frozenset(("block_size", "unroll", "fast_math", "launch_bounds", "restrict", "lift_constants"))
"""Rules that leave the kernel's structure as it is."""
DRAWN = 6
"""Configurations beside the default that are tried for being right."""


class Tried:
    """Compiles and runs configurations of one kernel after another on one device."""

    def __init__(self, device: DeviceInfo, drawn: int) -> None:
        self.drawn = drawn
        self.pool = CompilePool(workers=2, timeout_s=60)
        self.device = device
        self.ports = SessionPorts(ChildOpener(device, run_timeout_s=10), self.pool, ReferenceRunner())

    def row(self, found: Found) -> dict[str, Any]:
        """What became of one kernel."""
        job = found.job
        if job is None:
            return {"kernel": found.name, "cannot": found.why_not}
        own = Template(kernel=job.kernel, space=job.space)
        compiled = self._compiling(own, own.space.defaults).result()
        if isinstance(compiled, Rejected):
            return {"kernel": found.name, "does not compile": _first_line(compiled)}
        report = make_template(job)
        template = report.template
        row: dict[str, Any] = {
            "kernel": found.name,
            "rules": [a.rule for a in template.applied],
            "parameters": {p.name: len(p.values) for p in template.space.parameters},
            "structural": [n for a in template.applied if a.rule not in PLAIN for n in a.parameters],
            "declined": [str(d) for d in report.declined],
        }
        made = self._compiling(template, template.space.defaults).result()
        row["compiles"] = not isinstance(made, Rejected)
        if isinstance(made, Rejected):
            row["log"] = _first_line(made)
            return row
        return row | ({"not compared": "not asked for"} if self.drawn < 0 else self._compared(job, template))

    def _compiling(self, template: Template, configuration: Configuration) -> "Future[Compiled | Rejected]":
        return self.pool.submit(template.configured(configuration), self.device)

    def _compared(self, job: Job, template: Template) -> dict[str, Any]:
        """How many configurations leave what the user's kernel leaves."""
        session = DeviceSession(job, self.ports)
        try:
            row = self._right(session, job, template)
        finally:
            session.close()
        if UNWRITTEN not in row.get("not compared", ""):
            return row
        # With invented sizes many kernels write a part; what they leave alone is then compared as well.
        return self._compared(partly_written(job), make_template(partly_written(job)).template)

    def _right(self, session: DeviceSession, job: Job, template: Template) -> dict[str, Any]:
        own = session.inputs.user_template
        verdict = self._try(session, own, own.space.defaults, self._compiling(own, own.space.defaults))
        if verdict:
            return {"not compared": verdict}
        scopes = [self.device.scope() | w.scope() for w in job.workloads]
        feasible = enumerate_space(template.space, scopes)
        rng = random.Random(7)
        rows = rng.sample(range(feasible.count), min(self.drawn, feasible.count))
        drawn = [feasible.configuration(i) for i in rows]
        wrong: list[dict[str, Any]] = []
        tried = [(c, self._compiling(template, c)) for c in (template.space.defaults, *drawn)]
        for configuration, compiling in tried:
            verdict = self._try(session, template, configuration, compiling)
            if verdict:
                wrong.append({"configuration": dict(configuration), "why": verdict})
        return {"tried": len(tried), "wrong": wrong, "configurations": feasible.count}

    def _try(
        self,
        session: DeviceSession,
        template: Template,
        configuration: Configuration,
        compiling: "Future[Compiled | Rejected]",
    ) -> str:
        """Why a configuration is wrong; empty where it is right."""
        workload = session.job.workloads[0]
        kernel = template.configured(configuration)
        try:
            compiled = compiling.result()
            if isinstance(compiled, Rejected):
                return f"does not compile: {_first_line(compiled)}"
            session.expected.of(Case(workload))
            handle = session.device(workload).load(compiled)
            loaded = LoadedKernel(handle, workload, launch_size(kernel, workload, self.device))
            judged = session.checker.check(loaded, whole=True)
            session.device(workload).unload(handle)
        except (InvalidInput, KernelRefused, ExpressionError) as exc:
            return str(exc)[:300]
        except ChildDied as exc:
            session.renew()
            return f"ended its process: {exc}"[:300]
        return judged.reason[:300] if isinstance(judged, Rejected) else ""


def partly_written(job: Job) -> Job:
    """The same job with outputs that the kernel may leave as they are."""
    made = {Role.OUTPUT: Role.INOUT}
    arguments = tuple(a.model_copy(update={"role": made.get(a.role, a.role)}) for a in job.kernel.arguments)
    return job.model_copy(update={"kernel": job.kernel.model_copy(update={"arguments": arguments})})


def _first_line(rejected: Rejected) -> str:
    lines = (rejected.log or rejected.reason).splitlines()
    return next((line for line in lines if "error" in line), rejected.reason)[:300]


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The table's figures."""
    usable = [r for r in rows if "rules" in r]
    compared = [r for r in usable if "tried" in r]
    rules = Counter(rule for r in usable for rule in set(r["rules"]))
    return {
        "kernels": len(rows),
        "that a job cannot express": sum("cannot" in r for r in rows),
        "that do not compile as they are": sum("does not compile" in r for r in rows),
        "made into templates": len(usable),
        "templates that compile": sum(r["compiles"] for r in usable),
        "with a structural parameter": sum(bool(r["structural"]) for r in usable),
        "compared with the kernel": len(compared),
        "right on all configurations tried": sum(not r["wrong"] for r in compared),
        "configurations tried": sum(r["tried"] for r in compared),
        "rules": dict(rules.most_common()),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: a line for each kernel."""
    lines = ["| kernel | rules | parameters | compiles | right |", "|---|---|---|---|---|"]
    for r in rows:
        if "rules" not in r:
            why = r.get("cannot") or f"does not compile as it is: {r['does not compile']}"
            lines.append(f"| {r['kernel']} | - | {_cell(why)} | - | - |")
            continue
        names = ", ".join(f"{k} ({v})" for k, v in r["parameters"].items()) or "none"
        right = f"{r['tried'] - len(r['wrong'])} of {r['tried']}" if "tried" in r else "not compared"
        built = "yes" if r["compiles"] else f"no: {_cell(r['log'])}"
        lines.append(f"| {r['kernel']} | {', '.join(r['rules']) or 'none'} | {names} | {built} | {right} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:120]


def write(head: dict[str, Any], rows: list[dict[str, Any]], out: Path, name: str) -> None:
    """The record as JSON and as Markdown."""
    sources = {p.name: f"{p.repository}@{p.commit}" for p in PROJECTS}
    record = head | {"sources": sources, "totals": totals(rows), "kernels": rows}
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    figures = "\n".join(f"- {label}: {value}" for label, value in record["totals"].items())
    (out / f"{name}.md").write_text(
        f"# Templates of OpenCL kernels that others wrote\n\n{record['device']}, commit {record['commit']}, "
        f"{record['when']}. `{record['command']}`\n\n{figures}\n\n{table(rows)}"
    )
    print(json.dumps(record["totals"], indent=1))


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--checkouts", type=Path, required=True, help="folder that the projects are fetched to"
    )
    parser.add_argument(
        "--mirrors", type=Path, help="folder of git directories to fetch from, OWNER+NAME/repo"
    )
    parser.add_argument("--only", default="", help="kernels whose name holds this expression")
    parser.add_argument("--out", type=record_folder, default=RESULTS / "opencl-corpus")
    parser.add_argument("--name", default="templates", help="of the record")
    parser.add_argument(
        "--drawn", type=int, default=DRAWN, help="configurations beside the default; -1: compile only"
    )
    arguments = parser.parse_args()
    arguments.checkouts.mkdir(parents=True, exist_ok=True)
    device = first_device(Backend.OPENCL)
    tried = Tried(device, arguments.drawn)
    rows = []
    for project in PROJECTS:
        folder = fetch(project, arguments.checkouts, arguments.mirrors)
        for found in find(project, folder):
            if re.search(arguments.only, found.name):
                rows.append(tried.row(found))
                print(json.dumps(rows[-1])[:600], flush=True)
    record = where(device, f"python -m benchmarks.opencl_corpus.templates --drawn {arguments.drawn}")
    write(record, rows, arguments.out, arguments.name)
    tried.pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
