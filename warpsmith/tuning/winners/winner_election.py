"""Comparisons of finalists with the user's kernel: checked, timed in pairs of processes, then inspected."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpsmith.domain.jobs.job import Job, Metric, Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.memory import CHECKED_CASES
from warpsmith.domain.jobs.plan import Compiled, TimingPlan
from warpsmith.domain.templates.outcome import MIN_CLAIM, Comparison, Interval, Rejected, Stage, Verdict
from warpsmith.domain.templates.space import configuration_key
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import other_cache, search_plan
from warpsmith.measure.roofline import not_refuted
from warpsmith.measure.statistics import summarise, verdict_of, width_of_blocks
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.checks.reference_prefetch import (
    CACHED_BYTES,
    CHECKED_FIRST,
    ReferencePrefetch,
    cached_bytes,
)
from warpsmith.tuning.checks.sanitizers import SanitizerCheck
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.session.baseline_kernel import compiled_baseline, know_words
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.tasks import BaselineResult, Withdrawal
from warpsmith.tuning.timing.energy import energies
from warpsmith.tuning.timing.paired_blocks import TimedSide, block_plan
from warpsmith.tuning.winners.finalists import Finalist, Name, elected, searched_us, serves
from warpsmith.tuning.winners.gain_checks import Doubt, clock_doubt
from warpsmith.tuning.winners.one_timing import timed_once
from warpsmith.tuning.winners.process_pairs import PairEnvironment, Pairing, SizedKernel, time_in_pairs
from warpsmith.tuning.winners.retime_near_ties import TIMINGS, retime_near_ties
from warpsmith.tuning.winners.winner_checks import Winner, WinnerChecks, fault

MOST_FINALISTS = 3
"""Limit on the configurations tried for a workload before its baseline is kept."""
BESIDE = 6
"""Limit on the processes that are opened, checked or ended at once."""


RankedFinalists = tuple[Workload, Sequence[Finalist]]
"""A workload with the finalists that may win it, best first."""


@dataclass(frozen=True)
class ComparisonPlan:
    """Number of blocks, noise and thresholds by which winners are compared with the baseline."""

    pairs: int
    """Block pairs of each comparison."""
    aa_widths: Mapping[str, float] = field(default_factory=dict)
    """Noise by workload key, from the baseline: a smaller difference is none. Where it is unknown, the blocks
    of the user's kernel in the comparison tell."""
    least_gain: float | None = MIN_CLAIM
    """Relative gain that a trial must promise for its workload to be compared; None: all are compared, and
    each winner goes through every check, also one that would not serve. Only time compares less than all."""


@dataclass(frozen=True)
class Decision:
    """Outcome of the comparisons of a workload's finalists."""

    workload: Workload
    comparison: Comparison | None = None
    """Comparison to publish."""
    winner: Finalist | None = None
    """Finalist of that comparison."""
    server: Finalist | None = None
    """The winner if it is better than the baseline."""
    left: Sequence[Finalist] = ()
    """Finalists that take the winner's place if it is refused."""


class Election:
    """The comparisons of one verification; call `close` in the end."""

    def __init__(
        self, job: Job, ports: SessionPorts, plan: ComparisonPlan, baseline: BaselineResult | None
    ) -> None:
        self.withdrawn: list[Withdrawal] = []
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
        is_on = self.base.inputs.defences.sanitizers
        self._sanitizers = SanitizerCheck(self.base, ports.sanitizer) if is_on else None
        self._beside = ThreadPoolExecutor(BESIDE, thread_name_prefix="beside")
        self._winner_checks = WinnerChecks(self._sanitizers)
        self._refused: set[Name] = set()
        """Configurations that were wrong between workloads."""
        self._binaries: dict[Name, tuple[ConfiguredKernel, Compiled | Rejected]] = {}

    @cached_property
    def own(self) -> tuple[ConfiguredKernel, Compiled]:
        """The user's kernel, compiled when it is first needed."""
        return compiled_baseline(self.base)

    def close(self) -> None:
        """End the processes of the user's kernel, and what goes on beside."""
        ending = [self._beside.submit(self.base.close)]
        if self._sanitizers is not None:
            ending.append(self._beside.submit(self._sanitizers.close))
        self._prefetch.close()
        wait(ending)
        self._beside.shutdown()

    def begin(self, workloads: Sequence[Workload]) -> None:
        """Prefetch what winners of these workloads are checked with first, while kernels compile."""
        self._prefetch.begin(self.base, workloads)

    def groups(self, workloads: Sequence[Workload]) -> Iterator[list[Workload]]:
        """Workloads that are compared together: their expected outputs take no more memory than those of a
        baseline's largest workload, or than what may be prefetched."""
        held = {w.key: cached_bytes(self.base.inputs.plan(w)) for w in workloads}
        most = max(CACHED_BYTES, CHECKED_CASES * max(held.values(), default=0))
        group: list[Workload] = []
        for workload in workloads:
            if group and CHECKED_FIRST * sum(held[w.key] for w in (*group, workload)) > most:
                yield group
                group = []
            group.append(workload)
        if group:
            yield group

    def retimed(self, asked: Mapping[str, RankedFinalists]) -> dict[str, RankedFinalists]:
        """Finalists by workload; for time, with near-ties of the search ordered by new timings.

        Each candidate has a process of its own.
        """
        if self._job.objective.metric is not Metric.TIME:
            return dict(asked)
        sessions: dict[str, DeviceSession] = {}
        plan = block_plan(self._job.objective.cache)
        found: dict[str, RankedFinalists] = {}
        try:
            for key, (workload, finalists) in asked.items():

                def again(
                    index: int, of: Workload = workload, ties: Sequence[Finalist] = finalists
                ) -> float | None:
                    finalist = ties[index]
                    if finalist.candidate not in sessions:
                        sessions[finalist.candidate] = self.base.sibling()
                    session = sessions[finalist.candidate]
                    self._expect(session, of)
                    return self._timed_us(session, of, finalist, plan)

                PROGRESS.at(f"verification: near ties of {key}")
                times = [searched_us(self._job, workload, f) for f in finalists]
                noise = self._aa_widths.get(key, MIN_CLAIM)
                with self._prefetch.paused():
                    order = retime_near_ties(times, noise, again, TIMINGS)
                for session in sessions.values():
                    session.release(workload)
                found[key] = workload, [finalists[i] for i in order]
        finally:
            for made in sessions.values():
                made.close()
        return found

    def _timed_us(
        self, session: DeviceSession, workload: Workload, finalist: Finalist, plan: TimingPlan
    ) -> float | None:
        """Time of a finalist measured once more, µs; None if that fails, which its second check finds too."""
        kernel, compiled = self.binary(finalist)
        if isinstance(compiled, Rejected) or self.base.checker.binary_refusal(kernel, compiled) is not None:
            return None
        return timed_once(session, workload, kernel, compiled, plan)

    def without(
        self, decided: Mapping[str, Decision], refused: Mapping[Name, Rejected]
    ) -> dict[str, Decision]:
        """Withdraw winners that are refused everywhere; finalists that are left take their place."""
        settled = dict(decided)
        self._refused |= set(refused)
        for key, before in decided.items():
            winner = before.winner
            if winner is not None and winner.name in refused:
                self._withdraw(before.workload, winner, refused[winner.name])
                settled |= self.inspected(self.decide({key: (before.workload, before.left)}))
        return settled

    def decide(self, asked: Mapping[str, RankedFinalists]) -> dict[str, Decision]:
        """Compare finalists with the baseline, for time until one is right, for another objective all.

        Args:
            asked: the finalists of every workload, best first, by the workload's key.
        """
        left = {key: [f for f in some if f.name not in self._refused] for key, (_, some) in asked.items()}
        verified: dict[str, list[tuple[Comparison, Finalist]]] = {key: [] for key in asked}
        while True:
            open_ = [k for k in asked if not self._is_settled(asked[k][0], verified[k], left[k])]
            if not open_:
                break
            next_ = {key: (asked[key][0], self._next(left[key], anew=not verified[key])) for key in open_}
            for key, result in self._compare(next_).items():
                workload, finalist = next_[key]
                if isinstance(result, Rejected):
                    self._withdraw(workload, finalist, result)
                else:
                    verified[key].append((result, finalist))
        decided = {}
        for key, (workload, _) in asked.items():
            self.base.release(workload)
            self.base.expected.forget(workload)
            comparison, server = elected(self._job, verified[key])
            winner = server or (verified[key][0][1] if verified[key] else None)
            rest = left[key] + [f for _, f in verified[key] if f is not winner]
            decided[key] = Decision(workload, comparison, winner, server, rest)
        return decided

    def inspected(self, decided: Mapping[str, Decision]) -> dict[str, Decision]:
        """Add the sanitizers' findings; a winner that is refused for one gives way to those left.

        All winners are inspected at once, when nothing is timed any more: most of it is opening processes.
        """
        settled = dict(decided)
        asked = list(settled.values()) if self._sanitizers is not None else []
        while asked := [
            d for d in asked if d.comparison is not None and self._is_checked_whole(d.comparison)
        ]:
            findings = self._inspect(asked)
            again: list[Decision] = []
            for before, found in zip(asked, findings, strict=True):
                workload, comparison, winner = before.workload, before.comparison, before.winner
                assert comparison is not None
                assert winner is not None
                if isinstance(found, Rejected):
                    self._withdraw(workload, winner, found)
                    (now,) = self.decide({workload.key: (workload, before.left)}).values()
                    again.append(now)
                else:
                    now = replace(before, comparison=comparison.model_copy(update={"sanitizers": found}))
                settled[workload.key] = now
            asked = again
        return settled

    def _inspect(self, decided: Sequence[Decision]) -> list[dict[str, str] | Rejected]:
        """The sanitizers' findings, or rejections for those that the user's kernel does not have."""
        assert self._sanitizers is not None
        PROGRESS.at("verification: sanitizers")
        winners = []
        for one in decided:
            assert one.winner is not None
            winners.append((one.workload, self._built(one.winner)))
        return self._sanitizers.inspect(winners, self.own)

    def _withdraw(self, workload: Workload, finalist: Finalist, why: Rejected) -> None:
        fallen = Withdrawal(
            words=why.reason,
            candidate=finalist.candidate,
            configuration=finalist.configuration,
            workload=workload.key,
            stage=why.stage,
            log=why.log,
            case=why.case,
        )
        self.withdrawn.append(fallen)

    def _is_settled(
        self, workload: Workload, verified: Sequence[tuple[Comparison, Finalist]], left: Sequence[Finalist]
    ) -> bool:
        """True if no further finalist is compared: for time, unless one that was put back for a fault of its
        template promises more than what is verified."""
        if not left or not verified or self._job.objective.metric is not Metric.TIME:
            return not left
        found_us = min(searched_us(self._job, workload, f) for _, f in verified)
        back = [f for f in left if f.candidate in self._fallen]
        return all(searched_us(self._job, workload, f) >= found_us for f in back)

    @property
    def _fallen(self) -> set[str]:
        """Candidates of which a configuration was withdrawn for a fault."""
        return {w.candidate for w in self.withdrawn if w.is_fault}

    def _next(self, left: list[Finalist], *, anew: bool) -> Finalist:
        """Take the best of the finalists that are left. If nothing is verified yet, those of templates that
        failed a check come last: what was wrong in one configuration may well be in others."""
        others = (n for n, f in enumerate(left) if f.candidate not in self._fallen)
        return left.pop(next(others, 0) if anew else 0)

    def _compare(self, asked: Mapping[str, tuple[Workload, Finalist]]) -> dict[str, Comparison | Rejected]:
        """A finalist on each workload against the user's kernel, or why it is withdrawn there.

        Every finalist has one process for all of its checks, and as many more as its blocks need.
        """
        fresh: dict[Name, DeviceSession] = {}
        results: dict[str, Comparison | Rejected] = {}
        pairings: dict[str, Pairing] = {}
        opening = [self._beside.submit(self.base.device, next(iter(asked.values()))[0])]
        for workload, finalist in asked.values():
            if finalist.name not in fresh:
                fresh[finalist.name] = self.base.sibling()
                opening.append(self._beside.submit(fresh[finalist.name].device, workload))
        try:
            self._expect_sanitizers([finalist for _, finalist in asked.values()])
            wait(opening)
            for key, (workload, finalist) in asked.items():
                session = fresh[finalist.name]
                try:
                    pairing = self._paired(workload, finalist, session)
                except (KernelRefused, ExpressionError, ChildDied) as exc:
                    pairing = fault(session, exc)
                if isinstance(pairing, Rejected):
                    results[key] = pairing
                else:
                    pairings[key] = pairing
            if self._sanitizers is not None:
                self._sanitizers.settle()
            around = PairEnvironment(self._prefetch.paused, self._beside, self._concluding(asked, results))
            time_in_pairs([*pairings.values()], self._pairs, around)
            for key, pairing in pairings.items():
                if pairing.refused is not None:
                    results[key] = pairing.refused
            self._check_winners(asked, pairings, results)
        finally:
            wait(opening)
            # The driver takes its time to end a process.
            wait([self._beside.submit(session.close) for session in fresh.values()])
        return results

    def _expect_sanitizers(self, finalists: Sequence[Finalist]) -> None:
        """Start what will inspect these, which takes longer than the inspection."""
        if self._sanitizers is not None:
            compiled = (self.binary(finalist)[1] for finalist in finalists)
            self._sanitizers.expect({c.binary for c in compiled if isinstance(c, Compiled)})

    def _paired(self, workload: Workload, finalist: Finalist, session: DeviceSession) -> Pairing | Rejected:
        """A finalist that was right in every element of a workload's outputs, or why it is withdrawn."""
        kernel, compiled = self.binary(finalist)
        if isinstance(compiled, Rejected):
            return compiled.model_copy(update={"reason": f"no longer compiles: {compiled.reason}"[:2000]})
        size = size_within_limits(kernel, workload, self._ports.opener.info)
        refused = self.base.checker.binary_refusal(kernel, compiled)
        if refused is not None:
            return refused
        if isinstance(size, Rejected):
            return size
        PROGRESS.at(f"verification: check of a winner of {workload.key}")
        self._expect(session, workload)
        handle = session.device(workload).load(compiled)
        checked = session.checker.check(LoadedKernel(handle, workload, size), whole=True, repeat=True)
        session.release(workload)
        if isinstance(checked, Rejected):
            return checked
        known = self._aa_widths.get(workload.key)
        is_time = self._job.objective.metric is Metric.TIME
        least = (known or 0.0) if is_time and not self.checks_all else None
        own_size = launch_size(self.own[0], workload, self._ports.opener.info)
        own = SizedKernel(self.base, self.own[1], own_size)
        return Pairing(workload, own, SizedKernel(session, compiled, size), least)

    def _check_winners(
        self,
        asked: Mapping[str, tuple[Workload, Finalist]],
        pairings: Mapping[str, Pairing],
        results: dict[str, Comparison | Rejected],
    ) -> None:
        """The baseline is kept otherwise, whatever a winner does on other inputs and shapes."""
        winners = [
            Winner(*asked[key], *self._built(asked[key][1]), pairings[key].winner.session)
            for key, result in results.items()
            if isinstance(result, Comparison) and self._is_checked_whole(result)
        ]
        results |= self._winner_checks.refused(winners, self._beside, lambda: self.own)

    def _is_checked_whole(self, result: Comparison) -> bool:
        return self.checks_all or serves(self._job, result)

    def _expect(self, session: DeviceSession, workload: Workload) -> None:
        """Know what launches of a winner must leave on the inputs that they are timed and checked with."""
        session.expected.compute(session.inputs.own_draws(workload))

    def _built(self, finalist: Finalist) -> tuple[ConfiguredKernel, Compiled]:
        """The kernel and binary of a finalist that compiles."""
        kernel, compiled = self.binary(finalist)
        assert isinstance(compiled, Compiled)
        return kernel, compiled

    def binary(self, finalist: Finalist) -> tuple[ConfiguredKernel, Compiled | Rejected]:
        """A finalist's kernel, compiled when it is first needed."""
        if finalist.name not in self._binaries:
            kernel = finalist.template.configured(finalist.configuration)
            compiled = self.base.compile(kernel)
            if isinstance(compiled, Compiled) and compiled.may_tell:
                compiled = self.base.compile(kernel.model_copy(update={"tells_words": True}))
            if isinstance(compiled, Compiled):
                know_words(self.base, compiled.telling)
            self._binaries[finalist.name] = (kernel, compiled)
        return self._binaries[finalist.name]

    def _concluding(
        self, asked: Mapping[str, tuple[Workload, Finalist]], results: dict[str, Comparison | Rejected]
    ) -> Callable[[Pairing, TimedSide, TimedSide], None]:
        """Adds what the blocks of a pairing say to the results."""

        def conclude(pairing: Pairing, own: TimedSide, winner: TimedSide) -> None:
            _, finalist = asked[pairing.workload.key]
            found = self._comparison(pairing, configuration_key(finalist.configuration))
            may_serve = self._job.objective.metric is not Metric.TIME or (
                isinstance(found, Comparison) and serves(self._job, found)
            )
            if isinstance(found, Comparison) and found.verdict is Verdict.FASTER:
                found = self._confirmed(pairing, found, own, winner)
            if isinstance(found, Comparison) and may_serve:
                with self._prefetch.paused():
                    found = self._with_more(found, {"A": own, "B": winner})
            results[pairing.workload.key] = found

        return conclude

    def _comparison(self, pairing: Pairing, key: str) -> Comparison | Rejected:
        """The winner's blocks against those of the user's kernel, or why it is withdrawn."""
        workload, timed, sampler = pairing.workload, pairing.timed, pairing.winner.session.sampler
        blocks = timed.samples
        baseline_us, best_us = (summarise([s for b in blocks[n] for s in b], 1).median_us for n in "AB")
        too_fast = sampler.below_floor(workload, best_us)
        if too_fast:
            return Rejected(stage=Stage.FLOOR, reason=too_fast)
        known = self._aa_widths.get(workload.key)
        width = width_of_blocks(blocks["A"]) if known is None else known
        floor = not_refuted(sampler.floor(workload), best_us)
        verdicts = {verdict_of(i, width) for i in timed.intervals()}
        return Comparison(
            workload=workload.key,
            configuration_key=key,
            baseline_us=baseline_us,
            best_us=best_us,
            speedup=timed.speedup,
            verdict=verdicts.pop() if len(verdicts) == 1 else Verdict.NOISY,
            cache=self._job.objective.cache.value,
            pairs=len(blocks["A"]),
            aa_width=width,
            blocks=timed.conditions,
            floor_us=None if floor is None else floor.us,
            floor_share=None if floor is None else floor.us / best_us,
            floor_bound=None if floor is None else floor.bound,
        )

    def _confirmed(
        self, pairing: Pairing, found: Comparison, own: TimedSide, winner: TimedSide
    ) -> Comparison | Rejected:
        """A gain as new inputs show it, or why it may not be published."""
        shown = pairing.fresh.confirmed(found.speedup, own, winner, pairing.timed, self._prefetch.paused())
        doubt = shown if isinstance(shown, Doubt) else None
        if doubt is None and self.base.inputs.defences.own_clock:
            with self._prefetch.paused():
                doubt = clock_doubt(own, winner, found.baseline_us)
        if doubt is not None and doubt.busy:
            note = f"no gain is claimed, for the host is busy and {doubt.words}"
            return found.model_copy(update={"verdict": Verdict.NOISY, "notes": (*found.notes, note)})
        if doubt is not None:
            return Rejected(stage=Stage.TIMING, reason=doubt.words)
        assert isinstance(shown, Interval)
        if shown is found.speedup:
            return found
        more = {"speedup": shown, "best_us": found.baseline_us / shown.estimate}
        return found.model_copy(update=more | {"verdict": verdict_of(shown, found.aa_width)})

    def _with_more(self, found: Comparison, sides: Mapping[str, TimedSide]) -> Comparison | Rejected:
        """A comparison with the times of the other cache state and, if the job asks for them, energies."""
        plan = search_plan(other_cache(self._job.objective.cache))
        times_us = {"A": found.baseline_us, "B": found.best_us}
        others: dict[str, float] = {}
        for name, side in sides.items():
            time_us = side.checked_us(plan)
            if isinstance(time_us, Rejected):
                return time_us
            others[name] = time_us
        energy = energies(self._job, self._ports.energy, sides, times_us, self.base.inputs.seed)
        if isinstance(energy, Rejected):
            return energy
        more = {"other_baseline_us": others["A"], "other_best_us": others["B"]}
        if energy is not None:
            more |= {
                "baseline_mj": energy.baseline_mj,
                "best_mj": energy.winner_mj,
                "energy_spread": energy.spread,
            }
        return found.model_copy(update=more)
