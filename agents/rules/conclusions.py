"""Conclusions of the rules without a model: a test plan, a bottleneck, excluded values. Pure."""

import math
import re
from collections.abc import Mapping

from agents.context import StepContext
from agents.questions.readings import AT_ROOFLINE, LOW_OCCUPANCY, NEAR_LAUNCH, readings
from agents.questions.role_inputs import facts
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.templates.space import Constraint, Space
from warpsmith.source.lexing.tokens import without_comments
from warpsmith.tuning.analysis.parameter_importance import Effect
from warpsmith.tuning.analysis.search_facts import Facts, KernelFacts
from warpsmith.tuning.tasks import Bottleneck, Profile, ProposedCase

MOST_SHAPES = 4
FAMILIES = (Family.SPIKE, Family.SCALED_UP, Family.ZEROS)
"""Families with which a larger workload is checked, unless they were already drawn at random."""
MOST_FAMILIES = 2
NEAR_ROOFLINE = 0.5
BUSY, IDLE = 80.0, 50.0
"""Percent of its peak above which a unit bounds the kernel, and below which it does not."""
RULED_OUT_AFTER = 4
"""Number of trials with a value, all of them rejected, after which the value is excluded."""

_NUMBER = re.compile(r"(?<![\w.])\d{1,4}(?![\w.])")


def test_plan(context: StepContext) -> tuple[ProposedCase, ...]:
    """Shapes around the kernel's own block, and families that the larger workloads lack."""
    job = context.job
    if context.baseline is None or job.kernel.backend.language.is_recorded:
        return ()
    known = {(Workload(dimensions=c.dimensions).key, c.family) for c in context.baseline.cases}
    listed = {w.key for w in job.workloads}
    ordered = sorted(job.workloads, key=lambda w: (math.prod(w.dimensions.values()), w.key))
    found: dict[str, ProposedCase] = {}
    for dimensions, reason in _shapes(ordered[0].dimensions, _block(context)):
        key = Workload(dimensions=dimensions).key
        if key not in listed and (key, Family.DECLARED) not in known:
            found.setdefault(key, ProposedCase(dimensions=dimensions, reason=reason))
    shapes = list(found.values())[:MOST_SHAPES]
    largest = ordered[-1]
    families = [f for f in FAMILIES if (largest.key, f) not in known] if len(ordered) > 1 else []
    reason = "a larger workload gets this family only by chance"
    wanted = [ProposedCase(dimensions=largest.dimensions, family=f, reason=reason) for f in families]
    return (*shapes, *wanted[:MOST_FAMILIES])


def _block(context: StepContext) -> int:
    """The largest literal extent of the block, or the largest power of two in the source, or 64."""
    kernel = context.job.kernel
    literal = [int(e.text) for e in kernel.launch.block if e.text.isdecimal()]
    numbers = [int(n) for n in _NUMBER.findall(without_comments(kernel.text))]
    powers = [n for n in numbers if 8 <= n <= 1024 and n & (n - 1) == 0]
    return max([n for n in literal if n >= 8] or powers or [64])


def _shapes(smallest: dict[str, int], block: int) -> list[tuple[dict[str, int], str]]:
    found = [({n: e + 1 for n, e in smallest.items()}, "every extent odd at once")]
    for name, extent in sorted(smallest.items(), key=lambda pair: -pair[1]):
        if extent > block:
            found.append((smallest | {name: block + 1}, f"{name} one more than a block of {block}"))
            found.append((smallest | {name: block - 1}, f"{name} one less than a block of {block}"))
    return found


def profile(context: StepContext) -> Profile:
    """The bottleneck of the best kernel so far, and what to change, from the facts alone."""
    known = facts(context)
    kernel = None if known is None else known.best or known.baseline
    if known is None or kernel is None or not kernel.workloads:
        return Profile(bottleneck="unknown")
    bottleneck = _bottleneck(known, kernel)
    ideas = _cure(bottleneck, kernel)
    if context.baseline is not None:
        ideas += readings(context.job, known, context.baseline.device)
    ideas += [
        f"{e.parameter} explains {e.importance:.0%} of the variance of the time; best value {_best_value(e)}"
        for e in known.effects[:2]
        if e.importance >= 0.1
    ]
    ideas += [
        f"{' and '.join(i.parameters)} must be chosen together ({i.importance:.0%} beyond each alone)"
        for i in known.interactions[:1]
    ]
    return Profile(bottleneck=bottleneck, hypotheses=tuple(ideas))


def _cure(bottleneck: Bottleneck, kernel: KernelFacts) -> list[str]:
    """The usual change for a bottleneck; none if few warps are resident for want of blocks alone, since
    registers and shared memory would allow more."""
    allowed = [w.occupancy for w in kernel.workloads if w.occupancy is not None]
    is_for_blocks = bottleneck == "occupancy" and bool(allowed) and min(allowed) >= LOW_OCCUPANCY
    return [_IDEAS[bottleneck]] if bottleneck in _IDEAS and not is_for_blocks else []


def plan_in_words(profile: Profile | None) -> str:
    """Changes for the next template, for its author: the hypotheses of the profile."""
    ideas = profile.hypotheses if profile is not None else ()
    return "; ".join(ideas) or "find what bounds it, and make tunable what that depends on"


_IDEAS: dict[Bottleneck, str] = {
    "spills": "registers spill to memory: fewer elements for a thread, less unrolling, or smaller blocks",
    "launch": "the time is that of an empty kernel: only fewer launches or larger workloads would help",
    "arithmetic": "arithmetic bounds it: cheaper functions, fewer operations, or matrix units",
    "memory": "memory traffic bounds it: move fewer bytes, in wider accesses",
    "occupancy": "few warps are resident: fewer registers or less shared memory for a block",
    "latency": "too few bytes are in flight: more elements for a thread, vector loads, more blocks",
}


def _bottleneck(known: Facts, kernel: KernelFacts) -> Bottleneck:
    if kernel.spill_bytes:
        return "spills"
    times = [w.time_us for w in kernel.workloads]
    if known.launch_us is not None and max(times) <= NEAR_LAUNCH * known.launch_us:
        return "launch"
    return _counted(kernel.counters) or _by_roofline(kernel)


def _counted(counters: Mapping[str, float]) -> Bottleneck | None:
    """Bottleneck by the hardware counters; None if nothing is busy."""
    dram = counters.get("dram_percent")
    if dram is not None and dram >= BUSY:
        return "memory"
    if dram is not None and dram < IDLE and counters.get("sm_percent", 0.0) >= BUSY:
        return "arithmetic"
    return None


def _by_roofline(kernel: KernelFacts) -> Bottleneck:
    """Bottleneck by the distance from the roofline and by the occupancy."""
    shares = [w.roofline_share for w in kernel.workloads if w.roofline_share is not None]
    if not shares:
        return "unknown"
    share = math.exp(sum(map(math.log, shares)) / len(shares))
    if share >= NEAR_ROOFLINE and {w.floor_bound for w in kernel.workloads} == {"flops"}:
        return "arithmetic"
    if share >= AT_ROOFLINE:
        return "memory"
    resident = [w.occupancy for w in kernel.workloads if w.occupancy is not None]
    # Counted facts come before those estimated from the compiler's figures.
    if "occupancy_percent" in kernel.counters:
        resident = [kernel.counters["occupancy_percent"] / 100]
    if resident and min(resident) < LOW_OCCUPANCY:
        return "occupancy"
    return "memory" if share >= NEAR_ROOFLINE else "latency"


def _best_value(effect: Effect) -> str:
    return min(effect.best, key=lambda value: effect.best[value], default="unknown")


def narrowed(space: Space, known: Facts | None) -> Space:
    """The space without the values that never worked."""
    more = []
    rejected = {e.parameter: e.rejected for e in known.effects} if known is not None else {}
    for parameter in space.parameters:
        for value in parameter.values:
            if not isinstance(value, int) or isinstance(value, bool) or value == parameter.baseline_value:
                continue
            failed, _, tried = rejected.get(parameter.name, {}).get(str(value), "0 of 1").partition(" of ")
            if failed == tried and int(tried) >= RULED_OUT_AFTER:
                reason = f"{failed} of {tried} configurations with it were rejected"
                text = f"{parameter.name} != {value}"
                more.append(Constraint.model_validate({"expression": text, "reason": reason}))
    return space.model_copy(update={"constraints": (*space.constraints, *more)})
