"""A device child that is replaced after any fault, with the inputs that are prepared in it."""

from dataclasses import dataclass, field

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import CaseKey
from warpsmith.tuning.execution.device_probe import open_well
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import Case, SessionPorts, as_case
from warpsmith.tuning.ports import DevicePort


@dataclass
class ReplaceableChild:
    """No child until the first use; after `renew` none until the next."""

    ports: SessionPorts
    inputs: SessionInputs
    _device: DevicePort | None = None
    _prepared: set[CaseKey] = field(default_factory=set)
    _suspect: bool = False
    """The last child died, and the device has not shown that it is well."""

    def device(self, of: Workload | Case) -> DevicePort:
        """A living child that has `of` prepared.

        Raises:
            ChildDied: it does not come up.
            DeviceSick: the child before it died, and now a kernel of our own fails as well.
        """
        if self._device is None:
            suspect, self._suspect = self._suspect, False
            tested = suspect and not self.inputs.info.backend.language.is_recorded
            self._device = open_well(self.ports) if tested else self.ports.opener.open()
            self._prepared = set()
        key = as_case(of).key
        if key not in self._prepared:
            self._device.prepare(self.inputs.plan(of))
            self._prepared.add(key)
        return self._device

    def release(self, of: Workload | Case) -> None:
        """Free a case's buffers if it is prepared."""
        key = as_case(of).key
        if self._device is not None and key in self._prepared:
            self._device.release(key)
            self._prepared.discard(key)

    def renew(self, faulted: bool = False) -> None:
        """Drop the child; the next use opens a fresh one.

        Args:
            faulted: the child died; before the next one the device has to show that it is well.
        """
        self._suspect = self._suspect or faulted
        device, self._device = self._device, None
        self._prepared = set()
        if device is not None:
            device.close()
