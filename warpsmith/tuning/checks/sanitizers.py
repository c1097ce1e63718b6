"""Runs winners under the platform's sanitizers, compared with the findings for the user's own kernel."""

import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.processes.cores import usable_cores
from warpsmith.tuning.execution.kernel_reference import OwnKernel
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.output_checker import checked_launch
from warpsmith.tuning.ports import SanitizerPort
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify.run_report import Array, RunReport

LARGEST_BYTES = 256 << 20
"""Bytes above which a workload is not inspected, since instrumented kernels are slow."""

CORES_EACH = 4
"""Number of cores per binary that is inspected: each has four tools, whose processes work when they start."""

NOT_RUN = "not run"
"""Key used in place of a tool's name."""

LAUNCHES, AT_ONCE = 16, 2
"""Launches in each of so many processes at once, which take the device from each other, after a warning."""

Built = tuple[ConfiguredKernel, Compiled]

log = logging.getLogger(__name__)


class SanitizerCheck:
    """Keeps findings, so that a binary is inspected once per workload."""

    def __init__(self, session: DeviceSession, sanitizer: SanitizerPort) -> None:
        self._session = session
        self._sanitizer = sanitizer
        self._found: dict[bytes, dict[str, str]] = {}
        self._wrong: dict[bytes, str | None] = {}

    def expect(self, binaries: Collection[bytes]) -> None:
        """Have what these binaries will be inspected with started in advance."""
        self._sanitizer.expect(len({b for b in binaries if b not in self._found}))

    def settle(self) -> None:
        """Wait until what was started in advance does nothing any more, so that a kernel may be timed."""
        self._sanitizer.settle()

    def close(self) -> None:
        """End what was started in advance."""
        self._sanitizer.drop()

    def inspect(
        self, winners: Sequence[tuple[Workload, Built]], own: Built
    ) -> list[dict[str, str] | Rejected]:
        """Findings of each winner by tool, or its rejection for one that the user's kernel does not have.

        Tools that did not run, and findings of both kernels, are noted and reject nothing. A warning may be
        of what a tool does not model (clusters, mbarriers): noted if many disturbed launches are right.
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
            wrong = self._disturbed(workload, winner) if words.startswith("Warning: ") else ""
            if wrong is None:
                found[tool] = (
                    f"{words}; {AT_ONCE * LAUNCHES} launches in {AT_ONCE} processes at once were right"
                )
                continue
            reason = f"{tool}: {words}{wrong and f'; and disturbed: {wrong}'}"[:2000]
            return Rejected(stage=Stage.SANITIZER, reason=reason, workload=workload.key)
        return found

    def _disturbed(self, workload: Workload, winner: Built) -> str | None:
        """The first fault of many launches in processes that disturb each other; None: all were right."""
        if winner[1].binary not in self._wrong:
            session, case = self._session, Case(workload)
            session.expected.compute([case])
            plan = session.inputs.plan(case)
            kernels = [OwnKernel(session.ports, winner[0]) for _ in range(AT_ONCE)]
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="disturb") as threads:
                ran = list(threads.map(lambda k: k.outputs([(plan, workload)] * LAUNCHES), kernels))
            for kernel in kernels:
                kernel.close()
            found = (self._judged(case, outputs) for some in ran for outputs in some)
            self._wrong[winner[1].binary] = next((words for words in found if words), None)
        return self._wrong[winner[1].binary]

    def _judged(self, case: Case, outputs: Mapping[str, Array] | InvalidInput) -> str:
        """Reason for refusing outputs; empty if they are right."""
        if isinstance(outputs, InvalidInput):
            return outputs.message
        inputs, report = self._session.inputs, RunReport(outputs, guard_violations=(), changed_inputs=())
        launch = checked_launch(case, inputs.plan(case), report, None, inputs.masks(case))
        found = self._session.checker.refusal(launch)
        return "" if found is None else found.reason

    def _findings(self, workload: Workload, built: Built) -> dict[str, str]:
        kernel, compiled = built
        key = compiled.binary
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
