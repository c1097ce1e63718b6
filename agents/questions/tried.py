"""Trials of a job and their results, in words. Pure."""

from agents.context import StepContext
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.step_facts import Tried

MOST_SHOWN = 12
MAX_REASON_CHARACTERS = 400


def history(context: StepContext) -> str:
    """The candidates of the job, the newest last: rules or words of their authors, trials, gain or reason."""
    if not context.tried:
        return "nothing was tried in this job yet"
    left_out = len(context.tried) - MOST_SHOWN
    lines = [f"{left_out} earlier candidates are left out"] if left_out > 0 else []
    return "\n".join([*lines, *(_line(t) for t in context.tried[-MOST_SHOWN:])])


def _line(tried: Tried) -> str:
    made = "; ".join(a.rule if a.rule != "written" else a.detail for a in tried.template.applied)
    idea = f", idea {tried.idea!r}" if tried.idea else ""
    head = f"candidate {tried.number}, round {tried.round}{idea} ({made or 'as it is'})"
    if tried.rejected:
        return f"{head}: rejected: {tried.rejected[:MAX_REASON_CHARACTERS]}"
    if tried.best_objective is None:
        return f"{head}: {tried.trials} trials, none measured"
    gain = gain_in_words(tried.best_objective)
    return f"{head}: {gain} after {tried.trials} trials, with {named(tried.best or {})}"


def gain_in_words(objective: float) -> str:
    """Speed-up in words, from a best time divided by that of the user's kernel."""
    return f"{1 / objective:.2f}x of your kernel's speed"


def named(configuration: Configuration) -> str:
    """A configuration as text."""
    return ", ".join(f"{name}={value}" for name, value in configuration.items()) or "its defaults"
