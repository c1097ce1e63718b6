"""Clocks, temperature, power and energy of an NVIDIA GPU through NVML, which needs no CUDA context."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.templates.outcome import Conditions

REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of NVML's clock event reasons under which a kernel runs slower than it could."""


class Nvml:
    """Implements `tuning.ports.ConditionsPort` and `measure.energy.EnergyCounter`."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def read(self, side: Literal["A", "B"]) -> Conditions | None:
        """See `ConditionsPort.read`."""
        nvml, handle = self._nvml, self._handle
        try:
            bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
            return Conditions(
                side=side,
                core_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
                power_limit_w=nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
                throttled=tuple(words for bit, words in REASONS.items() if bits & bit),
            )
        except nvml.NVMLError:
            return None

    def clock_limits(self) -> str:
        """Limits of the clocks, in words. NVML does not report a range that clocks are locked to."""
        nvml, handle = self._nvml, self._handle
        asked: dict[str, Callable[[], object]] = {
            "power": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle),
            "core": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "core applied": lambda: nvml.nvmlDeviceGetApplicationsClock(handle, nvml.NVML_CLOCK_SM),
            "memory applied": lambda: nvml.nvmlDeviceGetApplicationsClock(handle, nvml.NVML_CLOCK_MEM),
        }
        found = []
        for name, ask in asked.items():
            with suppress(nvml.NVMLError):  # what a device does not report limits nothing
                found.append(f"{name} {ask()}")
        return ", ".join(found)

    def energy_j(self) -> float | None:
        """See `EnergyCounter.energy_j`: energy of the whole GPU since its driver was loaded; Volta and
        newer."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except self._nvml.NVMLError:
            return None


def nvml_for(device: DeviceInfo) -> Nvml | None:
    """The NVML reader of a device; None if NVML is missing or does not know the device."""
    if not device.backend.language.has_nvidia_tools:
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            name = uuid if isinstance(uuid, str) else uuid.decode()
            if name.removeprefix("GPU-").replace("-", "") == device.uid.removeprefix("GPU-"):
                return Nvml(pynvml, handle)
    except pynvml.NVMLError:
        return None
    return None
