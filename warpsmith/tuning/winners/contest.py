"""Contests of winners with the user's kernel: checked, timed in pairs of processes, then inspected."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpsmith.domain.job import Job, Metric, Workload
from warpsmith.domain.launch_size import launch_size
from warpsmith.domain.outcome import MIN_CLAIM, Comparison, Rejected, Stage, Verdict
from warpsmith.domain.plan import Compiled, TimingPlan
from warpsmith.domain.space import configuration_key
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import other_cache, search_plan
from warpsmith.measure.roofline import not_refuted
from warpsmith.measure.statistics import speedup_interval, summarise, verdict_of, width_of_blocks
from warpsmith.tuning.checks.extra_cases import check_further
from warpsmith.tuning.checks.reference_prefetch import ReferencePrefetch
from warpsmith.tuning.checks.sanitizers import SanitizerCheck
from warpsmith.tuning.session.baseline_kernel import compiled_baseline
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.session.output_checks import CheckResult
from warpsmith.tuning.session.session_ports import Case, SessionPorts
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.timing.energy import energies
from warpsmith.tuning.timing.paired_blocks import Side
from warpsmith.tuning.winners.finalists import (
    Finalist,
    Name,
    elected,
    searched_us,
    serves,
)
from warpsmith.tuning.winners.one_timing import timed_once
from warpsmith.tuning.winners.process_pairs import Built, Surroundings, timed_in_pairs
from warpsmith.tuning.winners.retime_near_ties import TIMINGS, retime_near_ties
from warpsmith.whereabouts import HERE

CONTENDERS = 3
"""Limit on the configurations tried for a workload before its baseline is kept."""


@dataclass(frozen=True)
class ComparisonPlan:
    """How a winner is compared with the baseline."""

    pairs: int
    """Block pairs of each comparison."""
    aa_widths: Mapping[str, float] = field(default_factory=dict)
    """Noise by workload key, from the baseline: a smaller difference is none. Where it is unknown, the blocks
    of the user's kernel in the comparison tell."""
    least_gain: float | None = MIN_CLAIM
    """Relative gain that a trial must promise for its workload to be compared; None: all are compared, and
    each winner goes through every check, also one that would not serve. An objective other than time compares
    all."""


@dataclass(frozen=True)
class Decided:
    """What a workload's contenders came to."""

    workload: Workload
    comparison: Comparison | None = None
    """The one to publish."""
    winner: Finalist | None = None
    """Whose comparison it is."""
    server: Finalist | None = None
    """The winner if it is better than the baseline."""
    left: Sequence[Finalist] = ()
    """Contenders that take the winner's place if it is refused."""


class Contest:
    """The comparisons of one verification; call `close` in the end."""

    def __init__(
        self, job: Job, ports: SessionPorts, plan: ComparisonPlan, baseline: BaselineResult | None
    ) -> None:
        self.withdrawn: list[str] = []
        self._job = job
        self._aa_widths = plan.aa_widths
        self._pairs = plan.pairs
        self.checks_all = plan.least_gain is None
        """True if winners go through every check, also those that would not serve."""
        self._prefetch = ReferencePrefetch(ports.reference)
        self._ports = replace(ports, reference=self._prefetch)
        self.base = DeviceSession(job, self._ports)
        """The process of the user's kernel."""
        if baseline is not None:
            self.base.baseline.learn(baseline)
        sanitizer = ports.sanitizer if self.base.inputs.defences.sanitizers else None
        self._sanitizers = None if sanitizer is None else SanitizerCheck(self.base, sanitizer)
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._through_worlds: set[Name] = set()
        """Configurations that went through the worlds for an earlier workload."""
        self._refused: set[Name] = set()
        """Configurations that were wrong between workloads."""
        self._binaries: dict[Name, tuple[ConfiguredKernel, Compiled | Rejected]] = {}

    @cached_property
    def own(self) -> tuple[ConfiguredKernel, Compiled]:
        """The user's kernel, compiled when it is first needed."""
        return compiled_baseline(self.base)

    def close(self) -> None:
        """End the processes of the user's kernel, and what goes on beside."""
        self.base.close()
        self._prefetch.close()
        self._beside.shutdown()

    def begin(self, workloads: Sequence[Workload]) -> None:
        """Prefetch what winners of these workloads are checked with first, while kernels compile."""
        self._prefetch.begin(self.base, workloads)

    def prefetch_next(self, workload: Workload, following: Sequence[Workload]) -> None:
        """Prefetch references of the next workload while the device is busy with this one."""
        self._prefetch.prefetch_next(self.base, workload, following)

    def retimed(self, workload: Workload, contenders: Sequence[Finalist]) -> list[Finalist]:
        """Near-ties of the search, ordered by new timings, each candidate in its own process."""
        sessions: dict[str, DeviceSession] = {}
        plan = search_plan(self._job.objective.cache)

        def again(index: int) -> float | None:
            finalist = contenders[index]
            if finalist.candidate not in sessions:
                sessions[finalist.candidate] = self._fresh(workload)
            return self._timed_us(sessions[finalist.candidate], workload, finalist, plan)

        HERE.at(f"verification: near ties of {workload.key}")
        times = [searched_us(self._job, workload, f) for f in contenders]
        noise = self._aa_widths.get(workload.key, MIN_CLAIM)
        try:
            with self._prefetch.paused():
                order = retime_near_ties(times, noise, again, TIMINGS)
        finally:
            for made in sessions.values():
                made.close()
        return [contenders[i] for i in order]

    def _timed_us(
        self, session: DeviceSession, workload: Workload, finalist: Finalist, plan: TimingPlan
    ) -> float | None:
        """One more time of a finalist, µs; None if it fails, which its second check would find as well."""
        kernel, compiled = self.binary(finalist)
        if isinstance(compiled, Rejected) or self.base.checker.binary_refusal(kernel, compiled) is not None:
            return None
        return timed_once(session, workload, kernel, compiled, plan)

    def without(self, decided: Mapping[str, Decided], refused: Mapping[Name, Rejected]) -> dict[str, Decided]:
        """The same without winners that are refused everywhere; those left take their place."""
        settled = dict(decided)
        self._refused |= set(refused)
        for key, before in decided.items():
            winner = before.winner
            if winner is not None and winner.name in refused:
                self._withdraw(before.workload, winner, _words(refused[winner.name]))
                settled |= self.inspected({key: self.decide(before.workload, before.left)})
        return settled

    def decide(self, workload: Workload, contenders: Sequence[Finalist]) -> Decided:
        """Compare contenders with the baseline, for time until one is right, for another objective all."""
        verified: list[tuple[Comparison, Finalist]] = []
        left = [f for f in contenders if f.name not in self._refused]
        while left:
            finalist = left.pop(0)
            try:
                result = self._compare(workload, finalist)
            except ChildDied as exc:
                self.base.renew(faulted=True)
                result = f"ended its process: {exc}"
            except (KernelRefused, ExpressionError) as exc:
                result = str(exc)
            if isinstance(result, str):
                self._withdraw(workload, finalist, result)
                continue
            verified.append((result, finalist))
            if self._job.objective.metric is Metric.TIME:
                break
        self.base.release(workload)
        self.base.expected.forget(workload)
        comparison, server = elected(self._job, verified)
        winner = server or (verified[0][1] if verified else None)
        left += [f for _, f in verified if f is not winner]
        return Decided(workload, comparison, winner, server, left)

    def inspected(self, decided: Mapping[str, Decided]) -> dict[str, Decided]:
        """The same with the sanitizers' findings; who is refused for one gives way to those left.

        All winners are inspected at once, when nothing is timed any more: most of it is opening processes.
        """
        settled = dict(decided)
        asked = list(settled.values()) if self._sanitizers is not None else []
        while asked := [
            d for d in asked if d.comparison is not None and self._is_checked_whole(d.comparison)
        ]:
            findings = self._inspect(asked)
            again: list[Decided] = []
            for before, found in zip(asked, findings, strict=True):
                workload, comparison, winner = before.workload, before.comparison, before.winner
                assert comparison is not None
                assert winner is not None
                if isinstance(found, Rejected):
                    self._withdraw(workload, winner, _words(found))
                    now = self.decide(workload, before.left)
                    again.append(now)
                else:
                    now = replace(before, comparison=comparison.model_copy(update={"sanitizers": found}))
                settled[workload.key] = now
            asked = again
        return settled

    def _inspect(self, decided: Sequence[Decided]) -> list[dict[str, str] | Rejected]:
        """The sanitizers' findings, or rejections for those that the user's kernel does not have."""
        assert self._sanitizers is not None
        HERE.at("verification: sanitizers")
        winners = []
        for one in decided:
            assert one.winner is not None
            kernel, compiled = self.binary(one.winner)
            assert isinstance(compiled, Compiled)
            winners.append((one.workload, (kernel, compiled)))
        return self._sanitizers.inspect(winners, self.own)

    def _withdraw(self, workload: Workload, finalist: Finalist, why: str) -> None:
        name = configuration_key(finalist.configuration)
        self.withdrawn.append(f"{workload.key}: {name} {why}"[:500])

    def _compare(self, workload: Workload, finalist: Finalist) -> Comparison | str:
        key = configuration_key(finalist.configuration)
        HERE.at(f"verification: check of a winner of {workload.key}")
        kernel, compiled = self.binary(finalist)
        if isinstance(compiled, Rejected):
            return f"no longer compiles: {compiled.reason}"
        size = size_within_limits(kernel, workload, self._ports.opener.info)
        refused = self.base.checker.binary_refusal(kernel, compiled)
        if refused is not None:
            return _words(refused)
        if isinstance(size, Rejected):
            return size.reason
        fresh = self._fresh(workload)
        opening = self._beside.submit(self.base.device, workload)
        try:
            checked: CheckResult | None
            try:
                handle = fresh.device(workload).load(compiled)
                checked = fresh.checker.check(LoadedKernel(handle, workload, size), whole=True, repeat=True)
            finally:
                wait([opening])
            if isinstance(checked, Rejected):
                return _words(checked)
            winner = Built(fresh, compiled, size)
            result = self._timed(workload, key, winner)
            if isinstance(result, str) or not self._is_checked_whole(result):
                return result
            HERE.at(f"verification: further cases of {workload.key}")
            # The baseline is kept otherwise, whatever a winner does on other inputs and shapes.
            checked = check_further(
                fresh,
                finalist.template,
                kernel,
                compiled,
                [workload],
                every=True,
                worlds=finalist.name not in self._through_worlds,
            )
            if isinstance(checked, Rejected):
                return _words(checked)
            self._through_worlds.add(finalist.name)
            return result
        finally:
            fresh.close()

    def _is_checked_whole(self, result: Comparison) -> bool:
        return self.checks_all or serves(self._job, result)

    def _fresh(self, workload: Workload) -> DeviceSession:
        """A process for the winner alone, with the inputs and expected outputs of the baseline's."""
        fresh = self.base.sibling()
        fresh.expected.compute((Case(workload), fresh.inputs.another_draw(workload)))
        return fresh

    def binary(self, finalist: Finalist) -> tuple[ConfiguredKernel, Compiled | Rejected]:
        """A finalist's kernel, compiled when it is first needed."""
        if finalist.name not in self._binaries:
            kernel = finalist.template.configured(finalist.configuration)
            self._binaries[finalist.name] = (kernel, self.base.compile(kernel))
        return self._binaries[finalist.name]

    def _timed(self, workload: Workload, key: str, winner: Built) -> Comparison | str:
        """The winner's blocks against those of the user's kernel, or why it is withdrawn."""
        info = self._ports.opener.info
        own = Built(self.base, self.own[1], launch_size(self.own[0], workload, info))
        is_time = self._job.objective.metric is Metric.TIME
        known = self._aa_widths.get(workload.key)
        least = (known or 0.0) if is_time and not self.checks_all else None
        around = Surroundings(self._prefetch.paused, self._beside)
        timed = timed_in_pairs(workload, own, winner, self._pairs, least, around)
        if isinstance(timed, Rejected):
            return _words(timed)
        blocks, sampler = timed.samples, winner.session.sampler
        baseline_us, best_us = (summarise([s for b in blocks[n] for s in b], 1).median_us for n in "AB")
        too_fast = sampler.below_floor(workload, best_us)
        if too_fast:
            return f"{Stage.FLOOR.value}: {too_fast}"
        interval = speedup_interval(blocks["A"], blocks["B"])
        width = width_of_blocks(blocks["A"]) if known is None else known
        floor = not_refuted(sampler.floor(workload), best_us)
        found = Comparison(
            workload=workload.key,
            configuration_key=key,
            baseline_us=baseline_us,
            best_us=best_us,
            speedup=interval,
            verdict=Verdict.NOISY if timed.throttled else verdict_of(interval, width),
            cache=self._job.objective.cache.value,
            pairs=len(blocks["A"]),
            aa_width=width,
            blocks=timed.conditions,
            floor_us=None if floor is None else floor.us,
            floor_share=None if floor is None else floor.us / best_us,
            floor_bound=None if floor is None else floor.bound,
        )
        if is_time and not serves(self._job, found):
            return found
        with self._prefetch.paused():
            return self._with_more(found, {"A": own.side(workload), "B": winner.side(workload)})

    def _with_more(self, found: Comparison, sides: Mapping[str, Side]) -> Comparison | str:
        """A comparison with the times of the other cache state and, if the job asks for them, energies."""
        plan = search_plan(other_cache(self._job.objective.cache))
        times_us = {"A": found.baseline_us, "B": found.best_us}
        others: dict[str, float] = {}
        for name, side in sides.items():
            time_us = side.checked_us(plan)
            if isinstance(time_us, Rejected):
                return _words(time_us)
            others[name] = time_us
        energy = energies(self._job, self._ports.energy, sides, times_us, self.base.inputs.seed)
        if isinstance(energy, Rejected):
            return _words(energy)
        more = {"other_baseline_us": others["A"], "other_best_us": others["B"]}
        if energy is not None:
            more |= {
                "baseline_mj": energy.baseline_mj,
                "best_mj": energy.winner_mj,
                "energy_spread": energy.spread,
            }
        return found.model_copy(update=more)


def _words(rejected: Rejected) -> str:
    return f"{rejected.stage.value}: {rejected.reason}"
