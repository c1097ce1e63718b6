"""Every defence switched off in turn: which cheats then come through that all defences together stop.

    python -m benchmarks.trust.defences [--backend opencl|cuda] [--only NAME] [--all] [--out FOLDER]

A defence that no cheat needs is either redundant (another one catches the same) or unproven. For each,
the cheats that it is meant for are tried, in `AIMED`; with `--all`, every cheat and mutant of the corpus,
until one comes through. Where a later defence catches all that an earlier one was made for, both are off
(`WITH`).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from testbed.adversarial.corpus import Case, load
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import CompilePool
from warpsmith.verify.defences import Defences

AIMED: dict[str, tuple[str, ...]] = {
    "poison": ("d02_takes_for_cleared.cl", "d02_leftovers.cl"),
    "guards": ("d11_guards.cl",),
    "read_only": ("d10_keeps_in_inputs.cl", "d10_changes_inputs.cl"),
    "whole": ("d01_stencil_one_point.cl",),
    "globals": ("d03_memo.cl",),
    "telling": ("d04_counts_words.cl", "d04_telling_forms.cl", "d04_right_only_here.cl:name_of_the_file"),
    "timed_launches": (
        "d11_guards_when_timed.cl:in_large_ones",
        "d04_count_in_local.cl:after_some",
        "d04_honest_first.cl",
    ),
    "unspoiled": ("d04_spoiled_output.cl:plausible_all", "d04_spoiled_output.cl:distinct_all"),
    "redrawn_values": ("d03_same_address_often.cl",),
    "outputs_apart": ("d01_matmul_verifies",),
    "families": ("d05_merge_naive.cl", "d05_silu_structure.cl", "d05_silu_row_sniff.cl:looks_sorted"),
    "neighbours": ("d26_one_shape.cl:up_to_one_of_the_largest", "d26_one_shape.cl:two_widths"),
    "worlds": ("stencil_values.cl:alpha_built_in", "silu_values.cl:above_two_to_21"),
    "between": ("silu_values.cl:just_between",),
    "determinism": ("d12_old_output.cl", "d01_skip_if_done.cl", "d01_matmul_skip_if_done.cl"),
    "error_budget": ("d07_silu_inside.cl", "d07_precision.cl:inside_the_tolerance"),
    "task_gate": ("d08_own_reference.cl", "d08_loose_job.cl"),
    "fresh_inputs": ("d03_whole_inputs.cl",),
    "own_clock": ("d16_forged_times.cl:a_third",),
    "floor": ("d16_forged_times.cl:ten_thousandth",),
    "sanitizers": (
        "d11_prefetch_past_the_end.cu",
        "d11_reads_outside.cl",
        "d10_writes_inputs_back.cl",
    ),
}
"""By defence, parts of names of cheats."""
WITH = {
    "redrawn_values": ("families", "neighbours", "worlds", "fresh_inputs"),
    "outputs_apart": ("fresh_inputs",),
    "floor": ("own_clock",),
}
"""By defence, those that catch the same."""
TRIES = 3
"""Times that an aimed cheat is tried: chance may stop it, which is no defence."""
ELSEWHERE = {"redrawn_values": Backend.OPENCL}
"""On CUDA no cheat is known that keeps anything without a variable."""


def switched_off(defence: str) -> tuple[str, ...]:
    """What is off when a defence is."""
    return defence, *WITH.get(defence, ())


def through(device: DeviceInfo, off: str, cases: Sequence[Case]) -> dict[str, Any]:
    """The first of `cases` that comes through without that defence, and what stops the others."""
    pool = CompilePool()
    harness = Harness(device, pool, defences=replace(Defences(), **dict.fromkeys(switched_off(off), False)))
    stopped: dict[str, str] = {}
    try:
        for case in cases:
            found = harness.try_candidate(case.job(device.backend), case.template(device.backend), case.times)
            if not found.meets(case.expect):
                return {"defence": off, "through": case.name, "stopped": stopped}
            speedups = " ".join(f"{c.speedup.estimate:.2f}x" for c in found.comparisons)
            stopped[case.name] = f"{found.layer or 'no gain'}: {found.reason[:120] or speedups}"
    finally:
        harness.close()
        pool.close()
    return {"defence": off, "through": None, "stopped": stopped}


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="opencl", choices=["opencl", "cuda"])
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    arguments = parser.parse_args()
    backend = Backend(arguments.backend)
    device = first_device(backend)
    known = [c for kind in ("cheats", "mutants") for c in load(kind) if backend in c.backends]
    held = [c for c in known if c.status_on(backend) == "held"]
    rows = []
    for off in (f.name for f in fields(Defences)):
        if arguments.only not in off or ELSEWHERE.get(off, backend) is not backend:
            continue
        # What a defence stops in most runs must come through without it.
        stoppable = [c for c in known if c.status_on(backend) != "open"]
        aimed = [c for part in AIMED.get(off, ()) for c in stoppable if part in c.name]
        rest = [c for c in held if c not in aimed and c.layer not in ("compile", "launch", "run")]
        rows.append(through(device, off, [*aimed * TRIES, *(rest if arguments.all else ())]))
        print(f"without {off}: {rows[-1]['through'] or rows[-1]['stopped']}", flush=True)
    if arguments.only:
        return 0
    record = where(device, "python -m benchmarks.trust.defences " + " ".join(sys.argv[1:]))
    record |= {"every_case": arguments.all, "defences": rows}
    name = "defences-pocl" if device.shares_host else f"defences-{backend.value}"
    (arguments.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (arguments.out / f"{name}.md").write_text("\n".join(_markdown(record, device, rows)) + "\n")
    return 0 if all(r["through"] for r in rows) else 1


def _markdown(record: dict[str, Any], device: DeviceInfo, rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"# Defences, each switched off, on {device.name}",
        "",
        f"{device.driver}. Commit {record['commit']}, {record['when']}. `{record['command']}`",
        "",
        "| without | comes through | else stopped by |",
        "|---|---|---|",
    ]
    for r in rows:
        layers = sorted({s.split(":")[0] for s in r["stopped"].values()})
        off = " and ".join(switched_off(r["defence"]))
        lines.append(f"| {off} | {r['through'] or 'nothing'} | {', '.join(layers)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
