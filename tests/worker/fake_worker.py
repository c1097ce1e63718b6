"""A real worker with a fake device: `python -m tests.worker.fake_worker`."""

import logging

from warpsmith.testing.jobs import DEVICE
from worker.main import run

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run(pool_module="tests.worker.fake_pool", devices=[DEVICE])
