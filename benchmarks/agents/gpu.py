"""Arms of tuning with a model, through one embedded service whose questions are files.

    python -m benchmarks.agents.gpu go --state DIR --jobs-dir JOBS [--arms rules template ...] [--within S]
    python -m benchmarks.agents.gpu record --state DIR --out DIR

`go` posts every job in every arm, works until each has ended or waits for a reply, and ends. Questions lie
in `DIR/questions`; a reply is put into `DIR/replies` under the same name, as it came. `go` again takes the
replies and goes on, on another machine if DIR was carried there, so that no device is held while somebody
writes. A reply that the service cannot use stays open with the complaint beside it, in `DIR/refused`.
`record` makes the page of what has ended; other people's kernels and what was made of them are hashes there.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.agents.arms_page import page
from benchmarks.agents.history import hidden
from benchmarks.agents.tokens import token_count
from benchmarks.production.service import embedded_service, stage_seconds
from benchmarks.provenance import plain_command, record_folder
from warpsmith.commit import commit_name
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.clients.client import Client
from warpsmith.http_models import JobResult
from warpsmith.job_files.jobfile import load_job

ARMS: dict[str, dict[str, Any]] = {
    "own": {"strategy": "search", "agents": {"provider": "rules"}},
    "rules": {"strategy": "template", "agents": {"provider": "rules"}},
    "direct": {"strategy": "direct"},
    "template": {"strategy": "template"},
    "ideas": {"strategy": "template", "ideas": 2},
    "tools": {"strategy": "template", "tools": 8},
}
"""The user's own constants searched; the rules; a model that rewrites; a model that writes a template; the
same for two ideas; the same with tools."""
QUIET = dict.fromkeys(("tester", "profiler", "planner", "tuner"), "rules")
"""Roles that the rules play in every arm, so that a model is asked for the kernel alone."""
PATIENCE_S = 7 * 86400
LOOK_S = 0.1
ENVIRONMENT = {
    "WARPSMITH_AGENT_EXTERNAL_TIMEOUT_S": str(PATIENCE_S),
    # No job may know what another found.
    "WARPSMITH_REUSE_TRIALS_S": "0",
    "WARPSMITH_REMEMBERS": "false",
}

Known = dict[str, str]
"""Ids of jobs by `kernel.arm.seed`."""


def posted(job: Job, arm: str, seed: int, limits: Mapping[str, float]) -> Job:
    """A job in one arm, with the limits that all arms have."""
    wanted = dict(ARMS[arm])
    outside = {"provider": "external", "roles": QUIET}
    if "ideas" in wanted:  # they are the planner's
        outside["roles"] = {role: by for role, by in QUIET.items() if role != "planner"}
    outside |= {option: wanted.pop(option) for option in ("ideas", "tools") if option in wanted}
    change = {"agents": outside} | wanted | {"seed": seed, "budget": dict(limits)}
    return Job.model_validate(job.model_dump() | change)


class Series:
    """Jobs of one state folder, and a service that runs them."""

    def __init__(self, state: Path, client: Client, http: httpx2.Client) -> None:
        self._state = state
        self._client = client
        self._http = http
        self._ids = state / "jobs.json"
        self.known: Known = json.loads(self._ids.read_text()) if self._ids.exists() else {}
        asked = state / "requests.json"
        self._keys: Known = json.loads(asked.read_text()) if asked.exists() else {}
        """Names of files by the ids of requests."""
        for folder in ("questions", "replies", "refused", "results"):
            (state / folder).mkdir(exist_ok=True)

    def post(self, name: str, job: Job) -> None:
        """Post a job unless it is posted already."""
        if name not in self.known:
            self.known[name] = self._client.submit(job, key=name).id
            self._ids.write_text(json.dumps(self.known, indent=1) + "\n")

    def work(self, end: float) -> None:
        """Go on until every job has ended or waits for a reply that is not there.

        Args:
            end: time on the monotonic clock at which it stops anyway; the jobs go on the next time.
        """
        left = {name: id_ for name, id_ in self.known.items() if not self._result(name).exists()}
        while left and time.monotonic() < end:
            waiting = {request["job"] for request in self._open() if not self._answer(request)}
            for name, id_ in list(left.items()):
                if self._client.status(id_).state.is_terminal:
                    self._keep(name, id_)
                    del left[name]
            if left and waiting.issuperset(left.values()):
                return
            time.sleep(LOOK_S)

    def _result(self, name: str) -> Path:
        return self._state / "results" / f"{name}.json"

    def _open(self) -> Iterator[dict[str, Any]]:
        after: dict[str, str] = {}
        while True:
            found = self._http.get("/v1/agent-requests", params={"limit": "200", **after}).json()
            yield from found["items"]
            if not found["next"]:
                return
            after = {"after": found["next"]}

    def _answer(self, request: dict[str, Any]) -> bool:
        """Write a question down and post its reply; False: it waits for one that can be used."""
        name = next((n for n, id_ in self.known.items() if id_ == request["job"]), None)
        if name is None:
            return False
        key = self._key(name, request)
        question, reply = self._state / "questions" / key, self._state / "replies" / key
        if not question.exists():
            question.write_text(request["text"])
        if not reply.exists():
            return False
        complaint = self._state / "refused" / key
        if complaint.exists() and complaint.stat().st_mtime >= reply.stat().st_mtime:
            return False
        body = json.dumps({"answer": reply.read_text(), "by": "a large language model"})
        path = f"/v1/agent-requests/{request['id']}/reply"
        sent = self._http.post(path, content=body, headers={"Content-Type": "application/json"})
        if sent.status_code == 422:
            complaint.write_text(sent.text + "\n")
        return sent.status_code in (200, 409)

    def _key(self, name: str, request: dict[str, Any]) -> str:
        """Name of a question's files: the same in every series that asks it, so that a reply serves again."""
        if request["id"] not in self._keys:
            stem = f"{name}.{request['role']}{request['round']}"
            place = sum(key.startswith(f"{stem}.") for key in self._keys.values())
            self._keys[request["id"]] = f"{stem}.{place}.md"
            (self._state / "requests.json").write_text(json.dumps(self._keys, indent=1) + "\n")
        return self._keys[request["id"]]

    def _keep(self, name: str, id_: str) -> None:
        """Write down what became of a job."""
        result = self._client.result(id_)
        steps = self._http.get(f"/v1/jobs/{id_}/agent-steps").json()["items"]
        trials = [t.model_dump(mode="json") for t in self._client.trials(id_)]
        row = row_of(name, result, steps, trials)
        row["stages_s"] = stage_seconds(self._state / "data", id_)
        self._result(name).write_text(json.dumps(row, indent=1) + "\n")
        shown = ("name", "state", "speedup", "trials", "stages_s")
        print(json.dumps({k: row[k] for k in shown}), flush=True)


def row_of(
    name: str, result: JobResult, steps: list[dict[str, Any]], trials: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the record needs of an ended job."""
    kernel, arm, seed = name.rsplit(".", 2)
    best: dict[str, float] = {}
    for trial in trials:
        outcome = trial["outcome"] or {}
        if outcome.get("kind") == "measured":
            of = trial["candidate"]
            best[of] = min(best.get(of, math.inf), outcome["objective"])
    written = [c.id for c in result.candidates if any(a.rule == "written" for a in c.applied)]
    return {
        "name": name,
        "kernel": kernel,
        "arm": arm,
        "seed": int(seed),
        "device": result.device,
        "driver": result.driver,
        "state": result.state.value,
        "detail": result.detail,
        "reason": None if result.reason is None else result.reason.model_dump(mode="json"),
        "speedup": result.speedup or 1.0,
        "workloads": [{"key": w.key, "weight": w.weight} for w in result.job.workloads],
        "baseline": [t.model_dump(mode="json") for t in result.baseline],
        "comparisons": [c.model_dump(mode="json") for c in result.comparisons],
        "dispatch": [d.model_dump(mode="json") for d in result.dispatch],
        "candidates": [
            {
                "id": c.id,
                "state": c.state.value,
                "written": c.id in written,
                "trials": sum(t["candidate"] == c.id for t in trials),
                "best": best.get(c.id),
                "feasible": c.feasible,
                "parameters": [p.name for p in c.space.parameters],
            }
            for c in result.candidates
        ],
        "trials": result.trials_measured + result.trials_rejected + result.trials_cut_short,
        "rejected": result.trials_rejected,
        "rejections": [r.model_dump(mode="json") for r in result.rejections],
        "first_trials": first_trials(written, trials),
        "seconds": result.seconds,
        "steps": [
            {k: s[k] for k in ("role", "round", "provider", "fallback", "prompt", "reply", "latency_s")}
            for s in steps
            if s["provider"] != "rules" or s["fallback"]
        ],
    }


def first_trials(written: list[str], trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first trial of every template that a model wrote: whether it compiled, was right, was faster."""
    found = []
    for candidate in written:
        mine = sorted((t for t in trials if t["candidate"] == candidate), key=lambda t: t["number"])
        outcomes = [t["outcome"] for t in mine if t["outcome"] is not None]
        found.append({"candidate": candidate, "first": outcomes[0] if outcomes else None})
    return found


def go(options: argparse.Namespace) -> int:
    """Post what is not posted, and work; 1 if a job waits for a reply."""
    options.state.mkdir(parents=True, exist_ok=True)
    limits = {"seconds": options.seconds, "trials": options.trials, "rounds": options.rounds}
    end = time.monotonic() + options.within
    with (
        embedded_service(options.state / "data", ENVIRONMENT) as client,
        httpx2.Client(base_url=client.url, timeout=60) as http,
    ):
        series = Series(options.state, client, http)
        for seed in options.seeds:
            for arm in options.arms:
                for path in sorted(options.jobs_dir.glob("*.json")) if options.jobs_dir else ():
                    if not options.jobs or path.stem in options.jobs:
                        job = posted(load_job(path), arm, seed, limits)
                        series.post(f"{path.stem}.{arm}.{seed}", job)
        series.work(end)
        ended = sum(1 for _ in (options.state / "results").glob("*.json"))
    command = plain_command("python -m benchmarks.agents.gpu " + " ".join(sys.argv[1:]))
    with (options.state / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps({"commit": commit_name(), "command": command, "limits": limits}) + "\n")
    print(f"{ended} of {len(series.known)} jobs have ended", flush=True)
    return int(ended < len(series.known))


def record(options: argparse.Namespace) -> int:
    """The record of what has ended, as JSON and as a page; 1 if nothing has."""
    rows = [json.loads(p.read_text()) for p in sorted((options.state / "results").glob("*.json"))]
    if not rows:
        print(f"{options.state} has no result", file=sys.stderr)
        return 1
    for step in (s for row in rows for s in row["steps"]):
        for text in ("prompt", "reply"):
            step[f"{text}_characters"] = len(step[text])
            step[f"{text}_tokens"] = token_count(step[text])
    calls = [json.loads(line) for line in (options.state / "calls.jsonl").read_text().splitlines()]
    posted_ = json.loads((options.state / "jobs.json").read_text())
    missing = set(posted_) - {r["name"] for r in rows}
    rows = hidden(rows)
    for earlier in (json.loads(path.read_text()) for path in options.earlier):
        rows += earlier["jobs"]
        calls = earlier["calls"] + calls
        missing |= set(earlier["missing"])
    arms = dict(word.split("=") for word in options.arm_of_seed)
    rows = [
        r | {"arm": arms.get(str(r["seed"]), r["arm"])}
        for r in rows
        if r["kernel"].startswith(options.kernels)
    ]
    made = {
        "calls": calls,
        "answers_by": "a large language model",
        "missing": sorted(n for n in missing - {r["name"] for r in rows} if n.startswith(options.kernels)),
        "jobs": sorted(rows, key=lambda row: row["name"]),
    }
    (options.out / f"{options.name}.json").write_text(json.dumps(made, indent=1) + "\n")
    (options.out / f"{options.name}.md").write_text(page(made))
    return 0


def tuple_of_words(text: str) -> tuple[str, ...]:
    """The words of a list that commas separate."""
    return tuple(text.split(","))


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("go", help="post jobs, take replies, work until all wait or have ended")
    one.add_argument("--state", type=Path, required=True)
    one.add_argument("--jobs-dir", type=Path, help="folder of job files; without it nothing is posted")
    one.add_argument("--jobs", nargs="*", help="names of job files; all without it")
    one.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    one.add_argument("--seeds", nargs="+", type=int, default=[0])
    one.add_argument("--seconds", type=float, default=30.0)
    one.add_argument("--trials", type=int, default=60)
    one.add_argument("--rounds", type=int, default=1)
    one.add_argument("--within", type=float, default=math.inf, help="seconds after which it stops anyway")
    one.set_defaults(run=go)
    two = commands.add_parser("record", help="write the record of what has ended")
    two.add_argument("--state", type=Path, required=True)
    two.add_argument("--out", type=record_folder, required=True)
    two.add_argument("--name", default="agents-gpu")
    two.add_argument("--earlier", type=Path, nargs="*", default=(), help="records whose jobs stand beside")
    two.add_argument(
        "--kernels", type=tuple_of_words, default=("",), help="beginnings of kernels' names: a,b"
    )
    two.add_argument("--arm-of-seed", nargs="*", default=(), help="1=old_question: what a seed stands for")
    two.set_defaults(run=record)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
