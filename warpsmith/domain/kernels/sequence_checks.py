"""Checks of the form of a sequence of launches. Messages start with the field."""

from collections.abc import Iterator, Sequence

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.kernels.launch import Launch, SequencedLaunch

LEAST_LAUNCHES = 2


def sequence_problem(
    entry: str, launch: Launch, launches: Sequence[SequencedLaunch], arguments: Sequence[Argument]
) -> str:
    """The first problem of a kernel's launches and scratch, with its field; empty if there is none.

    Args:
        entry: of the kernel; of a sequence that of its first launch.
        launch: the same.
    """
    problems = _of_sequence(entry, launch, launches, arguments) if launches else _of_one(arguments)
    return next(problems, "")


def _of_one(arguments: Sequence[Argument]) -> Iterator[str]:
    for n, argument in enumerate(arguments):
        if argument.role is Role.SCRATCH:
            yield (
                f"arguments.{n}.role: {argument.name} is scratch, which lies between launches; list them as "
                "launches, or use inout"
            )


def _of_sequence(
    entry: str, launch: Launch, launches: Sequence[SequencedLaunch], arguments: Sequence[Argument]
) -> Iterator[str]:
    if len(launches) < LEAST_LAUNCHES:
        yield "launches: one launch is no sequence; use entry and launch"
    if entry != launches[0].entry:
        yield f"entry: is {entry!r}, and the first of launches has {launches[0].entry!r}; leave entry out"
    if launch != launches[0].launch:
        yield "launch: differs from that of the first of launches; leave launch out"
    taken: dict[str, list[int]] = {a.name: [] for a in arguments}
    for n, step in enumerate(launches):
        if "\0" in step.entry:
            yield f"launches.{n}.entry: has a NUL character, where a compiler would stop reading"
        yield from _of_launch(n, step, taken)
    for n, argument in enumerate(arguments):
        users = taken[argument.name]
        if not users:
            yield f"arguments.{n}.name: no launch takes {argument.name}; remove it, or add it to a launch"
        elif argument.role is Role.SCRATCH and len(users) == 1:
            yield (
                f"arguments.{n}.role: only launch {users[0]} takes {argument.name}; scratch is written by "
                "one launch and read by a later one"
            )


def _of_launch(n: int, step: SequencedLaunch, taken: dict[str, list[int]]) -> Iterator[str]:
    """Problems of a launch; adds it to the users of the arguments that it takes."""
    for m, name in enumerate(step.arguments):
        if name not in taken:
            yield (
                f"launches.{n}.arguments.{m}: no argument {name!r} is declared; declared are "
                f"{', '.join(taken)}"
            )
        elif n in taken[name]:
            yield f"launches.{n}.arguments.{m}: {name} is listed twice"
        else:
            taken[name].append(n)
    if step.launch.joins_blocks:
        field = "cooperative" if step.launch.cooperative else "cluster"
        yield (
            f"launches.{n}.launch.{field}: not possible within a sequence yet; leave it out, or post this "
            "launch as a job of its own"
        )
