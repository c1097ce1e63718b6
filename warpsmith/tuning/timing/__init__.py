"""Timing: paired blocks, drift, energy, ceilings of the device, hardware counters."""
