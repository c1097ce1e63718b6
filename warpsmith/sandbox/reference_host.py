"""References from the worker's side."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.domain.plan import WorkloadPlan
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.sandbox.environment import child_environment
from warpsmith.sandbox.messages import plan_to_json
from warpsmith.sandbox.process import ChildProcess
from warpsmith.verify.dtypes import reference_dtype
from warpsmith.verify.report import Array, ReferenceCase


@dataclass(frozen=True)
class ReferenceRunner:
    """Implements `tuning.ports.ReferencePort`: a fresh child for every call, another after one that dies.

    Args:
        timeout_s: deadline of one computation.
        memory_bytes: most address space that the child may take, libraries included.
    """

    timeout_s: float = 120
    memory_bytes: int = 48 << 30

    def numpy(
        self, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        """See `ReferencePort.numpy`."""
        (found,) = self.numpy_many(source, function, [(plan, dims)])
        if isinstance(found, InvalidInput):
            raise found
        return found

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """See `ReferencePort.numpy_many`."""
        found: list[Mapping[str, Array] | InvalidInput] = []
        child: ChildProcess | None = None
        try:
            for plan, dims in cases:
                if child is None:
                    argument = {"memory_bytes": self.memory_bytes}
                    child = ChildProcess(
                        "warpsmith.sandbox.reference_child", argument, child_environment(None)
                    )
                try:
                    found.append(self._ask(child, source, function, plan, dims))
                except InvalidInput as exc:
                    found.append(exc)
                    child.kill()
                    child = None
        finally:
            if child is not None:
                child.kill()
        return found

    def _ask(
        self, child: ChildProcess, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        try:
            deadline = time.monotonic() + self.timeout_s
            request = {"plan": plan_to_json(plan), "function": function, "dims": dict(dims)}
            child.channel.send(request, [source.encode()], deadline)
            reply, blobs = child.channel.receive(deadline)
        except ChildDied as exc:
            died = child.explain(exc)
            words = f"ran past {self.timeout_s:g} s" if died.cause == "timeout" else str(died)
            raise InvalidInput("reference", f"the NumPy function {words}") from exc
        if "error" in reply:
            raise InvalidInput("reference", str(reply["error"])[:1500])
        try:
            outputs: dict[str, Array] = {}
            for buffer, name, blob in zip(plan.mutated, reply["names"], blobs, strict=True):
                outputs[buffer.name] = np.frombuffer(blob, reference_dtype(buffer.dtype))
                if name != buffer.name or outputs[buffer.name].size != buffer.elements:
                    raise ValueError(name)
        except (LookupError, TypeError, ValueError) as exc:
            words = "the reference process sent something that is not a result"
            raise InvalidInput("reference", words) from exc
        return outputs
