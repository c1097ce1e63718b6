"""What compile nodes bring a GPU whose machine has few cores: trials a second with and without, in full mode.

    python benchmarks/gpu/compile_nodes.py --out OUT [--here 2] [--nodes 12] [--trials 300] [--repeats 2]

Starts private servers (programs on PATH, or wheels), an API and a worker that may compile `--here` kernels at
once, and, in turns with that alone, one more worker that compiles `--nodes` kernels for others. Reuse of
trials is off, and every run has an artifact folder of its own. Writes `OUT/compile-nodes.json`; `best` is the
best objective found (1: the baseline), since what is proposed further ahead is proposed knowing less.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu.two_gpus import run  # noqa: E402
from benchmarks.provenance import commit_name, plain_command  # noqa: E402
from db.engine import Database  # noqa: E402
from db.tables import CompilationRow, TrialRow  # noqa: E402
from tests.e2e.service import Service  # noqa: E402
from tests.servers import fresh_database, postgres_server, redis_server  # noqa: E402
from warpsmith.domain.state import CompilationState  # noqa: E402


def compiled_elsewhere(database: Database) -> int:
    """Binaries that compile nodes have brought so far."""
    done = CompilationRow.state == CompilationState.DONE
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(CompilationRow).where(done)) or 0


def best(database: Database) -> float:
    """The best objective of all jobs; each arm has a database of its own."""
    with database.read() as session:
        return float(session.scalar(select(func.min(TrialRow.objective))) or 1.0)


def arm(url: str, broker: str, folder: Path, nodes: int, options: argparse.Namespace) -> dict[str, Any]:
    """One job, with so many compilations elsewhere at once."""
    settings = {
        "WARPSMITH_DATABASE_URL": url,
        "WARPSMITH_BROKER_URL": broker,
        "WARPSMITH_REUSE_TRIALS_S": "0",
        "WARPSMITH_COMPILE_WORKERS": str(options.here),
    }
    service = Service(folder, settings).start()
    database = Database(url)
    try:
        if nodes:
            service.settings["WARPSMITH_COMPILE_WORKERS"] = str(nodes)
            service.spawn("worker", "--queues", "compile")
            service.wait_for("/v1/workers", lambda w: any(i["compile_slots"] for i in w["items"]))
        found = run(service, database, options.job, options.workloads, options.searcher, options.trials)
        rate = round(found["trials"] / found["seconds"], 2)
        elsewhere = {"compiled_elsewhere": compiled_elsewhere(database), "best": best(database)}
        return {"nodes": nodes, "rate": rate, **found, **elsewhere}
    except BaseException:
        print(service.logs(), file=sys.stderr)
        raise
    finally:
        database.dispose()
        service.stop()


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--here", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--job", type=Path, default=ROOT / "examples" / "merge_attn_states" / "cuda.yaml")
    parser.add_argument("--workloads", type=int, default=1, help="only so many, the smallest; 0: all")
    parser.add_argument("--searcher", default="default")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with postgres_server() as server, redis_server() as broker:
        for repeat in range(options.repeats):
            for nodes in (0, options.nodes):
                with fresh_database(server) as url:
                    folder = options.out / f"data-{repeat}-{nodes}"
                    found.append(arm(url, broker, folder, nodes, options))
                print(found[-1], flush=True)
    rates = {n: statistics.median(r["rate"] for r in found if r["nodes"] == n) for n in (0, options.nodes)}
    record: dict[str, Any] = {
        "commit": commit_name(),
        "command": plain_command("python " + " ".join(sys.argv)),
        "compilers_here": options.here,
        "trials_per_second": rates,
        "speedup": round(rates[options.nodes] / rates[0], 2),
    }
    (options.out / "compile-nodes.json").write_text(json.dumps(record | {"runs": found}, indent=1))
    print(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
