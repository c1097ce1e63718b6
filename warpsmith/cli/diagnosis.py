"""Findings of `doctor`: a check for each thing that this machine has, lacks or does not use."""

from enum import StrEnum

from warpsmith.domain.base import Frozen


class CheckState(StrEnum):
    """Outcomes of a check."""

    OK = "ok"
    MISSING = "missing"
    NOT_USED = "not used"


class Check(Frozen):
    """Check of a device, a library, a setting or a service."""

    subject: str
    state: CheckState
    detail: str
    """Version or name found, or the reason why the subject is missing."""
    remedy: str = ""
    """Remedy: an extra, a package or a setting to add."""
    blocks: bool = False
    """True if nothing can be tuned here while it is missing."""
    tunes: str = ""
    """Back end and device that this check shows to be able to tune, in words."""


def ok(subject: str, detail: str, tunes: str = "") -> Check:
    """Check of something that is here."""
    return Check(subject=subject, state=CheckState.OK, detail=detail, tunes=tunes)


def missing(subject: str, detail: str, remedy: str | None, *, blocks: bool = False) -> Check:
    """Check of something that is not here, or does not work."""
    state = CheckState.MISSING
    return Check(subject=subject, state=state, detail=detail, remedy=remedy or "", blocks=blocks)


def not_used(subject: str, detail: str, remedy: str = "") -> Check:
    """Check of something that nothing here needs."""
    return Check(subject=subject, state=CheckState.NOT_USED, detail=detail, remedy=remedy)


class Diagnosis(Frozen):
    """Abilities of this machine, with the checks that show them."""

    version: str
    commit: str
    """See `warpsmith.commit.commit_name`."""
    python: str
    can_tune: bool
    """True if a kernel can be tuned here with some back end."""
    reason: str
    """Back ends and devices that tune here, or the reason why none does."""
    checks: tuple[Check, ...]


def concluded(version: str, commit: str, python: str, checks: list[Check]) -> Diagnosis:
    """The diagnosis of these checks."""
    backends = [check.tunes for check in checks if check.state is CheckState.OK and check.tunes]
    blocks = [check for check in checks if check.state is CheckState.MISSING and check.blocks]
    if blocks:
        reason = "; ".join(f"{c.subject}: {c.detail}; {c.remedy}" for c in blocks)
    elif backends:
        reason = " and ".join(dict.fromkeys(backends))
    else:
        lacking = [c for c in checks if c.state is CheckState.MISSING and c.subject.endswith(" device")]
        reason = "no device: " + "; ".join(check.detail for check in lacking)
    return Diagnosis(
        version=version,
        commit=commit,
        python=python,
        can_tune=bool(backends) and not blocks,
        reason=reason,
        checks=tuple(checks),
    )
