"""The first trial of a template, which decides whether the template is searched at all."""

from collections.abc import Mapping
from concurrent.futures import Future

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Outcome, Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.tuning.checks.extra_cases import check_further
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.session.device_session import CheckedLaunch, DeviceSession
from warpsmith.tuning.trials.energy_pruner import EnergyPruner
from warpsmith.tuning.trials.trial import Evaluate, Trial, TrialContext, child_words


def at_once(session: DeviceSession) -> Evaluate:
    """Evaluates in the caller's thread, so that a wrong kernel is not timed."""

    def evaluate(launch: CheckedLaunch) -> "Future[CheckResult]":
        done: Future[CheckResult] = Future()
        done.set_result(session.checker.evaluate(launch))
        return done

    return evaluate


def run_trial(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
    *,
    whole: bool = False,
    energy_pruner: EnergyPruner | None = None,
) -> Outcome:
    """A trial of which everything is evaluated before the next step; see `TrialContext` for the arguments.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    context = TrialContext(session, baseline_us, at_once(session), whole, energy_pruner=energy_pruner)
    trial = Trial(template, kernel, compiled, context)
    trial.run()
    return trial.settle()


def run_gate(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
    energy_pruner: EnergyPruner | None = None,
) -> Outcome:
    """The first trial of a template: every element, then other inputs and other shapes.

    It tries what a winner is checked with. The verification alone has shapes between the workloads, and
    sanitizers, whose four processes take seconds of a device and disturb what is timed there.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    outcome = run_trial(
        session, template, kernel, compiled, baseline_us, whole=True, energy_pruner=energy_pruner
    )
    if isinstance(outcome, Rejected) or isinstance(compiled, Rejected):
        return outcome
    allowed = session.inputs.allowed(template, kernel)
    try:
        found = check_further(session, template, kernel, compiled, allowed)
    except (ExpressionError, KernelRefused) as exc:
        return _rejected(Stage.LAUNCH, str(exc), allowed[0], compiled)
    except ChildDied as exc:
        session.renew(faulted=True)
        return _rejected(Stage.RUN, child_words(exc), allowed[0], compiled)
    finally:
        session.expected.forget_cases()
    return outcome if found is None else found.model_copy(update={"facts": compiled.facts})


def _rejected(stage: Stage, words: str, workload: Workload, compiled: Compiled) -> Rejected:
    reason = f"on other inputs or shapes: {words}"[:2000]
    return Rejected(stage=stage, reason=reason, workload=workload.key, facts=compiled.facts)
