"""Runs winners under the platform's sanitizers and other schedules, compared with the user's own kernel."""

import logging
import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from time import monotonic

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.source_text import uses_atomics
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.processes.cores import usable_cores
from warpsmith.source.tree.rescheduled import rescheduled
from warpsmith.tuning.execution.kernel_reference import OwnKernel
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.output_checker import checked_launch
from warpsmith.tuning.ports import SanitizerPort
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify.run_report import RunReport

LARGEST_BYTES = 256 << 20
"""Bytes above which a workload is not inspected, since instrumented kernels are slow."""

CORES_EACH = 4
"""Number of cores per binary that is inspected: each has four tools, whose processes work when they start."""

NOT_RUN = "not run"
"""Key used in place of a tool's name."""

LAUNCHES, AT_ONCE = 16, 2
"""Launches in each of so many processes at once, which take the device from each other, after a warning."""

RACES = "racecheck"
"""Key of a tool that sees races in the memory of a group."""

RESCHEDULED = "rescheduled"
"""Key of launches in another order and with pauses."""

PAUSES, LONGEST_PAUSE = 1 << 27, 1 << 23
"""Turns of an empty loop: in the pauses of a group that writes each element once, some 0.2 s on a CPU, and in
one pause, longer than a scheduler lets a thread wait for a core."""
LONGEST_S = 1.0
"""Seconds after which no further launch under another schedule begins, if two are over."""

_GROUP_MEMORY = re.compile(r"\b(?:__local|local|__shared__)\b")

Built = tuple[ConfiguredKernel, Compiled]

log = logging.getLogger(__name__)


class SanitizerCheck:
    """Keeps findings, so that a binary is inspected once per workload."""

    def __init__(self, session: DeviceSession, sanitizer: SanitizerPort | None) -> None:
        self._session = session
        self._sanitizer = sanitizer
        self._found: dict[bytes, dict[str, str]] = {}
        self._wrong: dict[str, str | None] = {}

    def expect(self, binaries: Collection[bytes]) -> None:
        """Have what these binaries will be inspected with started in advance."""
        if self._sanitizer is not None:
            self._sanitizer.expect(len({b for b in binaries if b not in self._found}))

    def settle(self) -> None:
        """Wait until what was started in advance does nothing any more, so that a kernel may be timed."""
        if self._sanitizer is not None:
            self._sanitizer.settle()

    def close(self) -> None:
        """End what was started in advance."""
        if self._sanitizer is not None:
            self._sanitizer.drop()

    def inspect(
        self, winners: Sequence[tuple[Workload, Built]], own: Built
    ) -> list[dict[str, str] | Rejected]:
        """Findings of each winner by tool, or its rejection for one that the user's kernel does not have.

        Tools that did not run, and findings of both kernels, are noted and reject nothing. A warning may be
        of what a tool does not model (clusters, mbarriers): noted if many disturbed launches are right. Where
        no tool sees a race, a winner is launched under another schedule, too.
        A binary that wins several workloads is inspected on the first. Several are inspected at once.
        """
        by_binary: dict[bytes, list[int]] = {}
        for place, (_, (_, compiled)) in enumerate(winners):
            by_binary.setdefault(compiled.binary, []).append(place)

        def all_of(places: Sequence[int]) -> dict[int, dict[str, str] | Rejected]:
            return {place: self._inspected(*winners[place], own) for place in places}

        found: dict[int, dict[str, str] | Rejected] = {}
        at_once = max(1, usable_cores() // CORES_EACH)
        with ThreadPoolExecutor(at_once, thread_name_prefix="sanitize") as threads:
            for part in threads.map(all_of, by_binary.values()):
                found |= part
        return [found[place] for place in range(len(winners))]

    def _inspected(self, workload: Workload, winner: Built, own: Built) -> dict[str, str] | Rejected:
        if sum(b.size_bytes for b in self._session.inputs.plan(workload).buffers) > LARGEST_BYTES:
            return {}
        found = self._findings(workload, winner)
        for tool, words in found.items():
            if not words or tool == NOT_RUN:
                continue
            theirs = self._findings(workload, own)
            if theirs.get(tool) or not {tool, NOT_RUN} & theirs.keys():
                found[tool] = f"{'as in' if tool in theirs else 'not told of'} your kernel: {words}"
                continue
            try:
                wrong = (
                    self._disturbed(workload, [winner[0]] * AT_ONCE) if words.startswith("Warning: ") else ""
                )
            except InvalidInput as exc:
                wrong = exc.message
            if wrong is None:
                found[tool] = (
                    f"{words}; {AT_ONCE * LAUNCHES} launches in {AT_ONCE} processes at once were right"
                )
                continue
            reason = f"{tool}: {words}{wrong and f'; and disturbed: {wrong}'}"[:2000]
            return Rejected(stage=Stage.SANITIZER, reason=reason, workload=workload.key)
        return self._with_schedules(found, workload, winner[0], own[0])

    def _with_schedules(
        self, found: dict[str, str], workload: Workload, winner: ConfiguredKernel, own: ConfiguredKernel
    ) -> dict[str, str] | Rejected:
        """The findings with what another schedule shows, or a rejection if the user's kernel bears it."""
        if not self._may_race(winner, found):
            return found
        try:
            wrong = self._disturbed(workload, self._rescheduled(workload, winner))
            if wrong and self._disturbed(workload, self._rescheduled(workload, own)):
                return found | {RESCHEDULED: f"as in your kernel: {wrong}"}
        except (LookupError, InvalidInput) as exc:
            return found | {RESCHEDULED: f"{NOT_RUN}: {exc}"[:500]}
        if wrong:
            reason = f"depends on its schedule: with items in another order and pauses before writes, {wrong}"
            return Rejected(stage=Stage.SANITIZER, reason=reason[:2000], workload=workload.key)
        return found | {RESCHEDULED: ""}

    def _may_race(self, winner: ConfiguredKernel, found: Collection[str]) -> bool:
        """True if the user's kernel needs atomics, which a winner may lack, or if no tool that ran sees a
        missing barrier."""
        if not winner.kernel.backend.language.is_c_text:
            return False
        is_unseen = RACES not in found and _GROUP_MEMORY.search(winner.kernel.text)
        return bool(is_unseen) or uses_atomics(self._session.job.kernel.text)

    def _rescheduled(self, workload: Workload, kernel: ConfiguredKernel) -> list[ConfiguredKernel]:
        """The kernel with pauses, in either order of its items. Raises `LookupError` if it cannot be read."""
        size, plain = launch_size(kernel, workload, self._session.info), kernel.kernel
        items, groups = prod(size.block), prod(size.grid)
        mutated = self._session.inputs.plan(workload).mutated
        written = {b.name: max(min(items, b.elements), b.elements // groups) for b in mutated}
        longest = {name: min(LONGEST_PAUSE, PAUSES // writes + 1) for name, writes in written.items()}
        turns = [longest.get(argument.name, 0) for argument in plain.declared]
        texts = (
            rescheduled(kernel.source, plain.backend, plain.entry, plain.options, turns, reverse=reverse)
            for reverse in (True, False)
        )
        changed = (plain.model_copy(update={"source": text}) for text in texts)
        return [kernel.model_copy(update={"kernel": one, "defines": {}}) for one in changed]

    def _disturbed(self, workload: Workload, kernels: Sequence[ConfiguredKernel]) -> str | None:
        """The first fault of many launches in processes that disturb each other; None: all were right.

        Args:
            kernels: that of each process.

        Raises:
            InvalidInput: a kernel does not compile, or a launch failed.
        """
        key = kernels[0].key
        if key not in self._wrong:
            self._session.expected.compute([Case(workload)])
            running = [OwnKernel(self._session.ports, kernel) for kernel in kernels]
            try:
                with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="disturb") as threads:
                    found = list(threads.map(lambda one: self._fault(workload, one), running))
            finally:
                for one in running:
                    one.close()
            self._wrong[key] = next((words for words in found if words), None)
        return self._wrong[key]

    def _fault(self, workload: Workload, kernel: OwnKernel) -> str:
        """The first fault of a kernel's launches; empty: all were right.

        Raises:
            InvalidInput: a launch failed.
        """
        case, inputs, began = Case(workload), self._session.inputs, monotonic()
        plan = inputs.plan(case)
        for launches in range(LAUNCHES):
            if launches >= 2 and monotonic() - began > LONGEST_S:
                break
            (outputs,) = kernel.outputs([(plan, workload)])
            if isinstance(outputs, InvalidInput):
                raise outputs
            report = RunReport(outputs, guard_violations=(), changed_inputs=())
            found = self._session.checker.refusal(
                checked_launch(case, plan, report, None, inputs.masks(case))
            )
            if found is not None:
                return found.reason
        return ""

    def _findings(self, workload: Workload, built: Built) -> dict[str, str]:
        kernel, compiled = built
        key = compiled.binary
        if self._sanitizer is None:
            return {}
        if key not in self._found:
            try:
                size = launch_size(kernel, workload, self._session.info)
                self._found[key] = dict(
                    self._sanitizer.findings(compiled, self._session.inputs.plan(workload), size)
                )
            except Unavailable as exc:
                log.warning("a winner was not sanitized: %s", exc)
                self._found[key] = {NOT_RUN: str(exc)[:500]}
        return dict(self._found[key])
