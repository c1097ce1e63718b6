"""Holds the lock of a device: `python -m tests.worker.lock_holder DEVICE SECONDS`, the device as JSON."""

import sys
import time

from warpsmith.domain.device import DeviceInfo
from worker.device.device_lock import device_lock

if __name__ == "__main__":
    with device_lock(DeviceInfo.model_validate_json(sys.argv[1])):
        print("held", flush=True)
        time.sleep(float(sys.argv[2]))
