"""The boxes of the report: what to take into one's own program, and what it takes to run the job again."""

from collections.abc import Iterator, Mapping

from warpsmith.commit import version_text
from warpsmith.domain.jobs.job import Budget
from warpsmith.http_models import JobResult
from warpsmith.report.tables import configuration_text
from warpsmith.report.tuned_file import launch_text


def use_rows(result: JobResult, names: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Rows by workload: file, launch, defines; none if every workload keeps its baseline.

    Args:
        names: file names of the tuned sources, by workload.
    """
    if not names:
        return
    for entry in result.dispatch:
        file = names.get(entry.workload, "your kernel as posted")
        defines = configuration_text(entry.configuration) if entry.configuration is not None else ""
        yield entry.workload, file, launch_text(entry), defines


def reproduce_rows(result: JobResult) -> Iterator[tuple[str, str]]:
    """Names and values; what the result does not know has no row."""
    rows = (
        ("date", f"{result.finished_at:%Y-%m-%d}" if result.finished_at else ""),
        ("device", result.device),
        ("driver", result.driver),
        ("device class", result.device_class),
        ("budget", _budget_words(result.job.budget)),
        ("seed of the search", str(result.job.seed)),
        ("job", result.id),
        ("Warpsmith", _program(result)),
    )
    yield from ((name, value) for name, value in rows if value)


def _program(result: JobResult) -> str:
    if result.warpsmith_commit is None:
        return result.warpsmith_version
    return version_text(result.warpsmith_version, result.warpsmith_commit)


def _budget_words(budget: Budget) -> str:
    words = [f"{budget.trials} trials", f"{budget.seconds:g} s", f"rounds: {budget.rounds}"]
    if budget.tokens:
        words.append(f"{budget.tokens} tokens")
    if budget.usd:
        words.append(f"{budget.usd:g} USD")
    if not budget.stop_early:
        words.append("no early stop")
    return ", ".join(words)
