"""The task `tool`: tools used on a device for an agent that has not answered yet."""

from agents.context import StepContext
from agents.offline import offline_provider
from agents.questions.role_inputs import facts
from db.queue.lease import Lease
from db.repositories.tasks import TaskRepository
from db.tables import TaskRow
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.tasks import Counters, JobBaseline, StepResult, ToolPayload
from warpsmith.tuning.tools.profile import Interpret
from warpsmith.tuning.tools.use import use
from worker.device.device_setup import open_session
from worker.device.device_wait import WaitForDevice
from worker.device.process_context import Context
from worker.works.outcome import Done, baseline_of, job_of


def tool(context: Context, row: TaskRow, lease: Lease) -> Done:
    """Use the tools that a turn of an agent wants."""
    assert isinstance(row.payload, ToolPayload)
    with context.database.read() as session:
        job, baseline = job_of(session, row), baseline_of(session, row)
        turn = TaskRepository(session).get(row.payload.step).result
    assert isinstance(turn, StepResult), "decide waits for the turn"
    calls = [call for call in turn.tool_calls if call.answer is None]
    seed = context.seeds.of(row.job_id)
    with open_session(
        context.device_setup(), job, WaitForDevice(context, row, lease), seed
    ) as device_session:
        interpret = interpreter(job, baseline)
        return Done(use(device_session, baseline, calls, row.payload.seconds, interpret))


def interpreter(job: Job, baseline: JobBaseline) -> Interpret:
    """The diagnosis of the rules' profiler, for a configuration that no search has seen."""

    def interpret(
        template: Template, configuration: Configuration, outcome: Measured, counters: Counters
    ) -> list[str]:
        known = baseline.model_copy(update={"counted": (*baseline.counted, counters)})
        context = StepContext(job=job, parent=template, trials=[(configuration, outcome)], baseline=known)
        found = offline_provider().profile(context)
        ideas = "; ".join(found.hypotheses)
        lines = [f"bound by: {found.bottleneck}" + (f"; {ideas}" if ideas else "")]
        best = None if (said := facts(context)) is None else said.best
        for workload in best.workloads if best is not None else ():
            share = workload.roofline_share
            floor = "" if share is None else f", {share:.0%} of what the device allows"
            rate = f"{workload.bytes_per_s / 1e9:.1f} GB/s"
            lines.append(f"  {workload.workload}: {workload.time_us:.2f} µs, {rate}{floor}")
        return lines

    return interpret
