"""Checks of what `doctor` finds installed and configured: libraries, data folder, database, broker, model."""

from collections.abc import Iterator
from importlib.util import find_spec

from warpsmith import applications, extras
from warpsmith.cli.diagnosis import Check, CheckState, missing, not_used, ok
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
    lacking = [name for name in extras.EMBEDDED if find_spec(name) is None]
    if not lacking:
        return ok("service", "its libraries are installed")
    return missing("service", f"no {', '.join(lacking)}", extras.advice(lacking[0]), blocks=True)


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
        words, fix = (
            f"{present} cannot be written or read ({exc})",
            "WARPSMITH_DATA_DIR names a folder of yours",
        )
        return missing("data folder", words, fix, blocks=True)
    return ok("data folder", f"{folder}{'' if present == folder else ', made when it is needed'}")


def _stores(settings: Settings, installed: bool) -> Iterator[Check]:
    """Database and broker, as they are configured."""
    for subject, url, own in (
        ("database", settings.database_url, "SQLite in the data folder"),
        ("broker", settings.broker_url, "files in the data folder"),
    ):
        setting = f"WARPSMITH_{subject.upper()}_URL"
        if url is None:
            yield not_used(subject, f"{own} instead of a server", f"{setting} names one")
            continue
        try:
            if not installed:
                raise Unavailable("it cannot be asked without the service's libraries")
            extras.require(extras.wanted_by(settings, models=False))
            detail = str(getattr(applications.load("db.admin.reachable"), subject)(settings))
        except Unavailable as exc:
            yield missing(subject, str(exc), f"start it, or correct {setting}", blocks=True)
        else:
            yield ok(subject, detail)


def _model(settings: Settings) -> Check:
    if settings.openai_base_url is None:
        fix = "WARPSMITH_OPENAI_BASE_URL names a server with OpenAI's chat completions"
        return not_used("model", "rules take the steps of agents", fix)
    if find_spec("openai") is None:
        return missing("model", "openai is missing", extras.advice("openai"), blocks=True)
    name = settings.openai_model or "no default model"
    return ok("model", f"{name} at {settings.openai_base_url}, not called")
