"""Environment variables by which the supervisor configures a pool; imports nothing that a pool needs."""

from pydantic import TypeAdapter

from warpsmith.domain.device import DeviceInfo

WORKER_ID = "WARPSMITH_WORKER_ID"
"""The id of its worker row."""
POOL_DEVICE = "WARPSMITH_POOL_DEVICE"
"""Its device, as JSON."""
COMPILE_DEVICES = "WARPSMITH_COMPILE_DEVICES"
"""Local devices whose platform compiles, as JSON."""
DEVICES = TypeAdapter(tuple[DeviceInfo, ...])
"""Reads and writes the latter."""
