"""Checks of what `doctor` finds installed and configured: libraries, data folder, database, broker, model."""

from collections.abc import Iterator
from importlib.util import find_spec

from warpsmith import applications, extras
from warpsmith.cli.diagnosis import Check, CheckState
from warpsmith.errors import StorageUnusable, Unavailable
from warpsmith.settings import Settings
from warpsmith.system.storage_errors import require_room, usable_storage


def installation_checks(settings: Settings) -> Iterator[Check]:
    """Everything about this installation and its settings."""
    service = _libraries()
    yield service
    installed = service.state is CheckState.OK
    yield _data_folder(settings, installed and settings.embedded)
    yield from _stores(settings, installed)
    yield _model(settings)


def _libraries() -> Check:
    missing = [name for name in extras.EMBEDDED if find_spec(name) is None]
    if not missing:
        return Check(subject="service", state=CheckState.OK, detail="its libraries are installed")
    return Check(
        subject="service",
        state=CheckState.MISSING,
        detail=f"no {', '.join(missing)}",
        remedy=extras.advice(missing[0]) or "",
        blocks=True,
    )


def _data_folder(settings: Settings, installed: bool) -> Check:
    """The folder of the embedded mode, which may still have to be made, with its database."""
    folder = settings.data_dir.absolute()
    present = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        with usable_storage(present):
            require_room(present)
        if installed and (folder / "warpsmith.db").exists():
            applications.load("db.migrate").require_own(settings.sqlalchemy_url)
    except StorageUnusable as exc:
        return Check(
            subject="data folder",
            state=CheckState.MISSING,
            detail=f"{present} cannot be written or read ({exc})",
            remedy="WARPSMITH_DATA_DIR names a folder of yours",
            blocks=True,
        )
    made = "" if present == folder else ", made when it is needed"
    return Check(subject="data folder", state=CheckState.OK, detail=f"{folder}{made}")


def _stores(settings: Settings, installed: bool) -> Iterator[Check]:
    """Database and broker, as they are configured."""
    for subject, url, own in (
        ("database", settings.database_url, "SQLite in the data folder"),
        ("broker", settings.broker_url, "files in the data folder"),
    ):
        setting = f"WARPSMITH_{subject.upper()}_URL"
        if url is None:
            yield Check(
                subject=subject,
                state=CheckState.NOT_USED,
                detail=f"{own} instead of a server",
                remedy=f"{setting} names one",
            )
            continue
        try:
            if not installed:
                raise Unavailable("it cannot be asked without the service's libraries")
            extras.require(extras.wanted_by(settings, models=False))
            detail = str(getattr(applications.load("db.admin.reachable"), subject)(settings))
        except Unavailable as exc:
            yield Check(
                subject=subject,
                state=CheckState.MISSING,
                detail=str(exc),
                remedy=f"start it, or correct {setting}",
                blocks=True,
            )
        else:
            yield Check(subject=subject, state=CheckState.OK, detail=detail)


def _model(settings: Settings) -> Check:
    subject = "model"
    if settings.openai_base_url is None:
        return Check(
            subject=subject,
            state=CheckState.NOT_USED,
            detail="rules take the steps of agents",
            remedy="WARPSMITH_OPENAI_BASE_URL names a server with OpenAI's chat completions",
        )
    if find_spec("openai") is None:
        fix = extras.advice("openai") or ""
        return Check(
            subject=subject, state=CheckState.MISSING, detail="openai is missing", remedy=fix, blocks=True
        )
    name = settings.openai_model or "no default model"
    return Check(
        subject=subject, state=CheckState.OK, detail=f"{name} at {settings.openai_base_url}, not called"
    )
