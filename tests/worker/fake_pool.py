"""A pool whose device is the fake one: `python -m tests.worker.fake_pool`, started by `fake_worker`."""

import os
from pathlib import Path
from unittest.mock import patch

import worker.device.process_context
import worker.works.agent_step
from agents.context import StepContext
from agents.providers.steps import Panel
from tests.worker.setup_fakes import FakeSetup
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.templates.template import Template
from warpsmith.settings import Settings
from warpsmith.tuning.tasks import StepPayload, StepResult
from worker import pool

LEDGER = "TEST_LEDGER"
TRIAL_S = "TEST_TRIAL_S"


def _open(settings: Settings, device: DeviceInfo, fleet: object = None) -> FakeSetup:
    return FakeSetup(trial_s=float(os.environ[TRIAL_S]), ledger=Path(os.environ[LEDGER]))


def as_it_is(payload: StepPayload, context: StepContext, panel: Panel | None = None) -> StepResult:
    """Stands for the agents: the kernel with the user's own tunables."""
    job = context.job
    if payload.role != "templater":
        return StepResult(provider="rules")
    return StepResult(provider="rules", template=Template(kernel=job.kernel, space=job.space), tokens=7)


def main(arguments: list[str] | None = None) -> None:
    """Run it until told to stop."""
    with (
        patch.object(worker.device.process_context, "open_setup", _open),
        patch.object(worker.works.agent_step, "run_step", as_it_is),
    ):
        pool.main(arguments)


if __name__ == "__main__":
    main()
