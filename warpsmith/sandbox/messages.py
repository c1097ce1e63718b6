"""Requests to a device child and its replies, as plain JSON."""

from typing import Any

from warpsmith.domain.image import ImageFormat
from warpsmith.domain.job import CacheState
from warpsmith.domain.kernel import Draw, Dtype, Role
from warpsmith.domain.plan import (
    BufferPlan,
    CaseKey,
    Family,
    LaunchSize,
    LocalPlan,
    ScalarPlan,
    TimedCheck,
    TimingPlan,
    WorkloadPlan,
)

Json = dict[str, Any]


def plan_to_json(plan: WorkloadPlan) -> Json:
    """A plan as JSON."""
    arguments: list[Json] = []
    for a in plan.arguments:
        if isinstance(a, BufferPlan):
            draw = None if a.draw is None else a.draw.model_dump(mode="json")
            image = None if a.image is None else a.image.model_dump(mode="json")
            data = {"name": a.name, "dtype": a.dtype.value, "role": a.role.value, "shape": a.shape}
            arguments.append({**data, "draw": draw, "image": image})
        elif isinstance(a, LocalPlan):
            arguments.append({"name": a.name, "role": Role.LOCAL.value})
        else:
            arguments.append({"name": a.name, "dtype": a.dtype.value, "value": a.value})
    return {
        "workload": plan.workload,
        "seed": plan.seed,
        "arguments": arguments,
        "family": plan.family.value,
        "variant": plan.variant,
    }


def plan_from_json(data: Json) -> WorkloadPlan:
    """The inverse of `plan_to_json`."""
    arguments: list[BufferPlan | ScalarPlan | LocalPlan] = []
    for a in data["arguments"]:
        if a.get("role") == Role.LOCAL:
            arguments.append(LocalPlan(a["name"]))
            continue
        dtype = Dtype(a["dtype"])
        if "value" in a:
            arguments.append(ScalarPlan(a["name"], dtype, a["value"]))
        else:
            draw = None if a["draw"] is None else Draw.model_validate(a["draw"])
            image = None if a["image"] is None else ImageFormat.model_validate(a["image"])
            shape = tuple(a["shape"])
            arguments.append(BufferPlan(a["name"], dtype, Role(a["role"]), shape, draw, image))
    return WorkloadPlan(
        data["workload"], tuple(arguments), data["seed"], Family(data["family"]), int(data["variant"])
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
    }


def size_from_json(data: Json) -> LaunchSize:
    """The inverse of `size_to_json`."""
    grid, block = data["grid"], data["block"]
    return LaunchSize(
        (grid[0], grid[1], grid[2]),
        (block[0], block[1], block[2]),
        data["shared_bytes"],
        tuple(data["local_bytes"]),
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
    )


def _check_to_json(check: TimedCheck) -> Json:
    other = None if check.other is None else {"family": check.other[0].value, "variant": check.other[1]}
    ranges = {n: [list(r) for r in spans] for n, spans in check.ranges.items()}
    return {"ranges": ranges, "other": other, "redraw": check.redraw}


def _check_from_json(data: Json) -> TimedCheck:
    other = data["other"]
    return TimedCheck(
        {name: [(a, b) for a, b in spans] for name, spans in data["ranges"].items()},
        None if other is None else (Family(other["family"]), int(other["variant"])),
        data["redraw"],
    )
