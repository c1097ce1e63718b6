"""Jobs that a model completes: kernels drawn by lot, its replies as they come, and what running them shows.

    python -m benchmarks.first_hour.fill ask --mirrors FOLDER --checkouts FOLDER --out FOLDER
    python -m benchmarks.first_hour.fill check --mirrors FOLDER --checkouts FOLDER --out FOLDER
    python -m benchmarks.first_hour.fill launch --out FOLDER

`ask` draws kernels of a corpus of `door` and writes a question for each (`01-NAME/question.json`). A reply is
put beside it as `reply.json`. `check` completes the job files with them, compiles and launches them, and
writes `question-2.json` for those that were wrong; `reply-2.json` is then checked in the place of the first.
`launch`, on a machine with the device that `check` lacked, launches the jobs that `check` found right so far;
the next `check` takes its findings for its own. Sources are read from git at named commits, and nothing of
them is kept but the names.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.job_filling import question_file, reply_of
from benchmarks.first_hour.door import Found, checked_out, kernels_of
from benchmarks.first_hour.door_corpora import CORPORA
from benchmarks.provenance import record_folder
from warpsmith.cli.compile_check import Compiler
from warpsmith.cli.fill import Filler, with_remarks
from warpsmith.cli.init import Wanted
from warpsmith.cli.launch_check import launch_check
from warpsmith.commit import commit_name
from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job
from warpsmith.errors import InvalidInput, WarpsmithError
from warpsmith.job_filling.contracts import FillReply
from warpsmith.jobfile import parse_job
from warpsmith.sandbox.device_host import probe_devices
from warpsmith.settings import Settings

ROUNDS = 2
_SEED = "completed by a model"


def drawn(corpus: str, mirrors: Path, each: int) -> list[Found]:
    """The same number of kernels of both back ends, by lot."""
    chosen: list[Found] = []
    for backend in (Backend.OPENCL, Backend.CUDA):
        projects = [p for p in CORPORA[corpus] if p.backend is backend]
        listed = [found for project in projects for found in kernels_of(project, mirrors)]
        chosen += random.Random(f"{_SEED} {backend.value}").sample(listed, each)
    return chosen


def _places(arguments: argparse.Namespace) -> Iterator[tuple[Path, Found, Path]]:
    found = drawn(arguments.corpus, arguments.mirrors, arguments.each)
    for number, kernel in enumerate(found, 1):
        tree = checked_out(kernel.project, arguments.mirrors, arguments.checkouts)
        yield arguments.out / f"{number:02}-{kernel.name}", kernel, tree / kernel.file


def _ask(arguments: argparse.Namespace) -> None:
    with Compiler(Settings(_env_file=None)) as compiler:
        for folder, kernel, source in _places(arguments):
            folder.mkdir(parents=True, exist_ok=True)
            wanted = Wanted(kernel.name, kernel.project.backend)
            filler = Filler([source], source.with_suffix(".yaml"), wanted, compiler)
            try:
                question = filler.question()
            except WarpsmithError as exc:
                (folder / "refused.txt").write_text(f"{exc}\n")
                print(folder.name, "refused:", str(exc)[:200], flush=True)
                continue
            # Replies come without a look at the devices of this machine.
            asked = question.model_copy(update={"is_launched": True})
            (folder / "question.json").write_text(question_file(asked))
            print(folder.name, kernel.project.repository, kernel.file, flush=True)


def _checked(folder: Path, kernel: Found, filler: Filler) -> dict[str, Any]:
    """What became of one kernel, and the question that follows a wrong reply."""
    row: dict[str, Any] = {
        "project": kernel.project.repository,
        "commit": kernel.project.commit,
        "file": kernel.file,
        "kernel": kernel.name,
        "backend": kernel.project.backend.value,
    }
    if (folder / "refused.txt").exists():
        return row | {"outcome": "no job file", "why": (folder / "refused.txt").read_text().strip()[:300]}
    rounds: list[dict[str, Any]] = []
    for number in range(1, ROUNDS + 1):
        ending = "" if number == 1 else f"-{number}"
        path = folder / f"reply{ending}.json"
        if not path.exists():
            break
        reply: FillReply | None = None
        try:
            reply = reply_of(path.read_text())
            found = filler.check(reply)
            problems, text, notes = found.problems, found.text, found.notes
        except InvalidInput as exc:
            problems, text, notes = (str(exc),), "", ()
        launched = folder / f"launched{ending}.json"
        if not problems and launched.exists():
            told = json.loads(launched.read_text())
            problems, notes = tuple(told["problems"]), (*notes, told["device"])
        rounds.append({"problems": [p[:600] for p in problems], "notes": list(notes)})
        if not problems:
            assert reply is not None
            _keep_small(folder / f"small{ending}.json", filler.job(text), reply)
            (folder / "job.yaml").write_text(with_remarks(text, notes, "a large language model"))
            numpy = re.search(r"^  kind: numpy", text, re.M) is not None
            return row | {"outcome": "right", "rounds": rounds, "numpy_reference": numpy}
        following = folder / f"question-{number + 1}.json"
        if number < ROUNDS and not following.exists():
            following.write_text(question_file(filler.question(reply, problems)))
    return row | {"outcome": "wrong" if rounds else "no reply", "rounds": rounds}


def _keep_small(path: Path, job: Job, reply: FillReply) -> None:
    """Write the job, complete in itself, with the small sizes of a reply."""
    small = job.model_copy(update={"workloads": reply.small_workloads()})
    path.write_text(small.model_dump_json() + "\n")


def _launch(arguments: argparse.Namespace) -> None:
    settings = Settings(_env_file=None)
    devices = probe_devices().devices
    for path in sorted(arguments.out.glob("*/small*.json")):
        job = parse_job(json.loads(path.read_text()))
        device = next((d for d in devices if d.backend is job.kernel.backend), None)
        if device is None or (arguments.only and job.kernel.backend.value != arguments.only):
            continue
        problems = []
        for workload in job.workloads:
            alone = job.model_copy(update={"workloads": (workload,)})
            found = [f for f in launch_check(alone, device, settings) if f.is_error]
            problems += [f"with the small sizes {workload.key}: {f}" for f in found]
        told = {"device": f"launched on {device.name}, driver {device.driver}", "problems": problems}
        path.with_name(path.name.replace("small", "launched")).write_text(json.dumps(told, indent=1) + "\n")
        print(path.parent.name, json.dumps(told), flush=True)


def _check(arguments: argparse.Namespace) -> None:
    rows = []
    with Compiler(Settings(_env_file=None)) as compiler:
        for folder, kernel, source in _places(arguments):
            if arguments.only and kernel.project.backend.value != arguments.only:
                continue
            wanted = Wanted(kernel.name, kernel.project.backend)
            filler = Filler([source], source.with_suffix(".yaml"), wanted, compiler)
            try:
                rows.append(_checked(folder, kernel, filler))
            except Exception as exc:  # noqa: BLE001 a traceback is a result here
                rows.append(
                    {"kernel": kernel.name, "outcome": "fault", "why": f"{type(exc).__name__}: {exc}"[:300]}
                )
            print(json.dumps(rows[-1]), flush=True)
        devices = [f"{d.name}, driver {d.driver}" for d in compiler.devices]
    if arguments.record:
        head = {"commit": commit_name(), "devices": devices, "corpus": arguments.corpus, "seed": _SEED}
        name = "-".join(w for w in ("fill", arguments.corpus, arguments.only) if w)
        lines = "".join(json.dumps(row) + "\n" for row in (head, *rows))
        (arguments.record / f"{name}.jsonl").write_text(lines)


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("ask", "check", "launch"))
    parser.add_argument("--mirrors", type=Path, default=Path(), help="git directories, OWNER+NAME/repo")
    parser.add_argument("--checkouts", type=Path, default=Path(), help="folder that keeps the trees")
    parser.add_argument("--out", type=record_folder, required=True, help="questions and replies")
    parser.add_argument("--corpus", choices=tuple(CORPORA), default="known")
    parser.add_argument("--each", type=int, default=10, help="kernels of each back end")
    parser.add_argument("--only", default="", help="back end that is checked")
    parser.add_argument("--record", type=record_folder, help="folder of the record")
    arguments = parser.parse_args()
    {"ask": _ask, "check": _check, "launch": _launch}[arguments.step](arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
