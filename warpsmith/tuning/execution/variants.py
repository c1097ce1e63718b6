"""Compiles what launches of a kernel need: one binary, or a variant for each class of launches (Triton)."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from threading import Lock

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import expecting_launches, specialised, variants
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import MAX_LOG_CHARACTERS, Rejected, Stage, joined_facts
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.domain.templates.variant_binaries import distinct, split
from warpsmith.errors import KernelRefused
from warpsmith.tuning.ports import CompilerPort, DevicePort

Outcome = Compiled | Rejected


def submit(
    compiler: CompilerPort, kernel: ConfiguredKernel, workloads: Sequence[Workload], device: DeviceInfo
) -> "Future[Outcome]":
    """Start compiling for the launches on these workloads.

    A variant that does not compile is left out, and a launch that needs it is refused; if none compiles, the
    result is the first rejection.
    """
    if not kernel.kernel.backend.language.specialises:
        return compiler.submit(expecting_launches(kernel, workloads, device), device)
    wanted = variants(kernel, workloads, device)
    if len(wanted) == 1:
        return compiler.submit(next(iter(wanted.values())), device)
    whole: Future[Outcome] = Future()
    if not wanted:
        whole.set_result(Rejected(stage=Stage.SPACE, reason="its values cannot be evaluated on any workload"))
        return whole
    _Joining(whole, [compiler.submit(one, device) for one in wanted.values()])
    return whole


class _Joining:
    """Sets a future when all parts are there, from the thread of the last."""

    def __init__(self, whole: "Future[Outcome]", parts: Sequence["Future[Outcome]"]) -> None:
        self._whole, self._parts = whole, parts
        self._left, self._lock = len(parts), Lock()
        for part in parts:
            part.add_done_callback(self._one_done)

    def _one_done(self, _part: "Future[Outcome]") -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
        try:
            self._whole.set_result(_joined([part.result() for part in self._parts]))
        except Exception as exc:  # noqa: BLE001  what a part raised, such as work that was recalled
            self._whole.set_exception(exc)


def _joined(parts: Sequence[Outcome]) -> Outcome:
    compiled = [p for p in parts if isinstance(p, Compiled)]
    refused = [p for p in parts if isinstance(p, Rejected)]
    if not compiled:
        return refused[0]
    facts = joined_facts([p.facts for p in compiled]).model_copy(
        update={
            "seconds": sum(p.facts.seconds for p in compiled),
            "binary_bytes": sum(p.facts.binary_bytes for p in compiled),
        }
    )
    return Compiled(
        distinct([p.binary for p in compiled]),
        compiled[0].entry,
        facts,
        log="\n".join(r.reason for r in refused)[-MAX_LOG_CHARACTERS:],
        globals=tuple(sorted({name for p in compiled for name in p.globals})),
        telling=tuple(sorted({word for p in compiled for word in p.telling})),
    )


class LoadedVariants:
    """Handles of a kernel on one device child, for launches on whatever workload.

    Args:
        compiled: what was compiled for the job's workloads; other variants are compiled when they are needed.
    """

    def __init__(
        self, compiler: CompilerPort, device: DeviceInfo, kernel: ConfiguredKernel, compiled: Compiled
    ) -> None:
        self._compiler, self._info, self._kernel, self._compiled = compiler, device, kernel, compiled
        self._has_variants = kernel.kernel.backend.language.specialises
        self._known = {v.key for v in split(compiled.binary)} if self._has_variants else {""}
        self._asked: dict[str, Future[Outcome]] = {}
        self._handles: dict[str, int] = {}

    def expect(self, workloads: Iterable[Workload]) -> None:
        """Begin to compile what launches on these workloads need."""
        if self._has_variants:
            for key, kernel in variants(self._kernel, workloads, self._info).items():
                if key not in self._known and key not in self._asked:
                    self._asked[key] = self._compiler.submit(kernel, self._info)

    def on(self, device: DevicePort, workload: Workload) -> int:
        """The handle for a launch on a workload.

        Raises:
            KernelRefused: the variant does not compile.
            ExpressionError: a value cannot be evaluated.
            ChildDied: the child is gone.
        """
        key = specialised(self._kernel, workload, self._info).key if self._has_variants else ""
        own = "" if key in self._known else key
        if own not in self._handles:
            self._handles[own] = device.load(self._compiled if not own else self._variant(own, workload))
        return self._handles[own]

    def forget(self) -> None:
        """The child is gone, and all handles with it."""
        self._handles = {}

    def unload(self, device: DevicePort) -> None:
        """Unload all of them."""
        for handle in self._handles.values():
            device.unload(handle)
        self._handles = {}

    def _variant(self, key: str, workload: Workload) -> Compiled:
        self.expect([workload])
        found = self._asked[key].result()
        if isinstance(found, Rejected):
            raise KernelRefused(f"it does not compile for this shape: {found.reason}")
        return found
