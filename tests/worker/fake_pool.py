"""A pool whose device is the fake one: `python -m tests.worker.fake_pool`, started by `fake_worker`."""

import os
from pathlib import Path

import worker.process_context
import worker.works.agent_step
from tests.worker.setup_fakes import FakeSetup
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.template import Template
from warpsmith.settings import Settings
from warpsmith.tuning.tasks import StepPayload, StepResult
from worker import pool

LEDGER = "TEST_LEDGER"
TRIAL_S = "TEST_TRIAL_S"


def _open(settings: Settings, device: DeviceInfo, fleet: object = None) -> FakeSetup:
    return FakeSetup(trial_s=float(os.environ[TRIAL_S]), ledger=Path(os.environ[LEDGER]))


def as_it_is(payload: StepPayload, context: object, provider: object = None) -> StepResult:
    """Stands for the agents: the kernel with the user's own tunables."""
    job = context.job  # type: ignore[attr-defined]
    if payload.role != "templater":
        return StepResult(provider="test")
    return StepResult(provider="test", template=Template(kernel=job.kernel, space=job.space), tokens=7)


if __name__ == "__main__":
    worker.process_context.open_setup = _open  # type: ignore[assignment]
    worker.works.agent_step.run_step = as_it_is  # type: ignore[assignment]
    pool.main()
