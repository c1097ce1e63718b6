"""Requests to a device child and its replies, as plain JSON."""

from typing import Any

from warpsmith.domain.jobs.by_value_plan import TablePlan
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import BufferPlan, CaseKey, Family, TimedCheck, TimingPlan, WorkloadPlan
from warpsmith.sandbox.transport.argument_messages import argument_from_json, argument_to_json

Json = dict[str, Any]


def plan_to_json(plan: WorkloadPlan) -> Json:
    """A plan as JSON."""
    return {
        "workload": plan.workload,
        "seed": plan.seed,
        "arguments": [argument_to_json(a) for a in plan.arguments],
        "behind": [argument_to_json(a) for a in plan.behind],
        "family": plan.family.value,
        "variant": plan.variant,
    }


def plan_from_json(data: Json) -> WorkloadPlan:
    """The inverse of `plan_to_json`."""
    behind = [argument_from_json(a) for a in data["behind"]]
    return WorkloadPlan(
        data["workload"],
        tuple(argument_from_json(a) for a in data["arguments"]),
        data["seed"],
        Family(data["family"]),
        int(data["variant"]),
        tuple(a for a in behind if isinstance(a, BufferPlan | TablePlan)),
    )


def case_to_json(case: CaseKey) -> Json:
    """The name of a plan's inputs as JSON."""
    return {"workload": case.workload, "family": case.family.value, "variant": case.variant}


def case_from_json(data: Json) -> CaseKey:
    """The inverse of `case_to_json`."""
    return CaseKey(data["workload"], Family(data["family"]), int(data["variant"]))


def size_to_json(size: LaunchSize) -> Json:
    """A launch as JSON."""
    return {
        "grid": size.grid,
        "block": size.block,
        "shared_bytes": size.shared_bytes,
        "local_bytes": size.local_bytes,
        "cluster": size.cluster,
        "cooperative": size.cooperative,
        "takes": size.takes,
        "then": [size_to_json(step) for step in size.then],
        "scratch_bytes": size.scratch_bytes,
        "variant": size.variant,
    }


def size_from_json(data: Json) -> LaunchSize:
    """The inverse of `size_to_json`."""
    grid, block, cluster = data["grid"], data["block"], data["cluster"]
    return LaunchSize(
        (grid[0], grid[1], grid[2]),
        (block[0], block[1], block[2]),
        data["shared_bytes"],
        tuple(data["local_bytes"]),
        (cluster[0], cluster[1], cluster[2]),
        data["cooperative"],
        tuple(data["takes"]),
        tuple(size_from_json(step) for step in data["then"]),
        tuple(data["scratch_bytes"]),
        data["variant"],
    )


def timing_to_json(plan: TimingPlan) -> Json:
    """A timing plan as JSON."""
    return {
        "cache": plan.cache.value,
        "samples": plan.samples,
        "launches": plan.launches,
        "give_up_above_us": plan.give_up_above_us,
        "check": None if plan.check is None else _check_to_json(plan.check),
        "apart": plan.apart,
        "enough_s": plan.enough_s,
        "least": plan.least,
        "is_warm": plan.is_warm,
        "fresh": plan.fresh,
    }


def timing_from_json(data: Json) -> TimingPlan:
    """The inverse of `timing_to_json`."""
    check = None if data["check"] is None else _check_from_json(data["check"])
    return TimingPlan(
        CacheState(data["cache"]),
        data["samples"],
        data["launches"],
        data["give_up_above_us"],
        check,
        data["apart"],
        data["enough_s"],
        data["least"],
        data["is_warm"],
        data["fresh"],
    )


def _check_to_json(check: TimedCheck) -> Json:
    other = None if check.other is None else {"family": check.other[0].value, "variant": check.other[1]}
    ranges = {n: [list(r) for r in spans] for n, spans in check.ranges.items()}
    return {"ranges": ranges, "other": other, "redraw": check.redraw, "spoiled": check.spoiled}


def _check_from_json(data: Json) -> TimedCheck:
    other = data["other"]
    return TimedCheck(
        {name: [(a, b) for a, b in spans] for name, spans in data["ranges"].items()},
        None if other is None else (Family(other["family"]), int(other["variant"])),
        data["redraw"],
        data["spoiled"],
    )
