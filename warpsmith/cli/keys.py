"""`warpsmith keys`: API keys, created and revoked in the database of the settings, by an operator."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from warpsmith.cli.output import echo
from warpsmith.errors import InvalidInput

keys = typer.Typer(no_args_is_help=True, help="API keys, in the database of this machine's settings.")

KeyId = Annotated[str, typer.Argument(help="Id of a key, as `keys list` shows it.")]
SHOWN_ONCE = "this is the only time that the key is shown; send it as Authorization: Bearer"


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Whom it is for.")],
    tenant: Annotated[str, typer.Option(help="Whose jobs it opens.")] = "default",
    scopes: Annotated[
        str, typer.Option(help="Scopes, separated by commas: submit, read, agents, admin.")
    ] = "submit,read",
    days: Annotated[float | None, typer.Option(min=0.001, help="Days after which the key expires.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="requests_per_s, submits_per_minute, open_jobs, device_s_per_day or usd_per_day = number."
        ),
    ] = None,
) -> None:
    """Make a key, and print it once."""
    from warpsmith import applications

    forms = applications.load("db.api_keys")
    chosen = list(dict.fromkeys(s.strip() for s in scopes.split(",") if s.strip()))
    known = [s.value for s in forms.KeyScope]
    for scope in chosen:
        if scope not in known:
            raise InvalidInput("--scopes", f"{scope!r} is none of {', '.join(known)}")
    if not chosen:
        raise InvalidInput("--scopes", f"name at least one of {', '.join(known)}")
    if not re.fullmatch(forms.TENANT_PATTERN, tenant):
        raise InvalidInput("--tenant", "use lower-case letters, digits, dots, dashes, underscores")
    if not 1 <= len(name) <= 120 or not name.isprintable():
        raise InvalidInput("NAME", "use 1 to 120 printable characters")
    limits = _limits(forms.KeyLimits, limit or [])
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with _stored() as stored:
        made = stored.create(name, tenant, [forms.KeyScope(s) for s in chosen], limits, expires_at)
    _show(*made)


@keys.command("list")
def show() -> None:
    """List the keys: id, tenant, owner and scopes. The keys themselves are not stored."""
    with _stored() as stored:
        rows = stored.all()
    if not rows:
        echo("there are no keys; make one with: warpsmith keys create NAME", err=True)
    for row in rows:
        end = "" if row.expires_at is None else f"  until {row.expires_at:%Y-%m-%d %H:%M} UTC"
        state = "active" if stored.is_active(row) else "ended"
        limits = ", ".join(f"{k}={v:g}" for k, v in row.limits.model_dump(exclude_none=True).items())
        scopes = ",".join(row.scopes)
        words = [row.id, state, row.tenant, scopes, row.name, f"since {row.created_at:%Y-%m-%d}{end}", limits]
        echo("  ".join(w for w in words if w))


@keys.command()
def revoke(key_id: KeyId) -> None:
    """Revoke a key. APIs refuse it after five seconds at the latest."""
    with _stored() as stored:
        ended = stored.revoke(key_id)
    echo(f"{key_id} is ended" if ended else f"{key_id} was revoked before")


@keys.command()
def rotate(
    key_id: KeyId,
    grace_s: Annotated[float, typer.Option(min=0, help="Seconds for which the old key still works.")] = 0.0,
) -> None:
    """Replace a key: make one with the same rights, print it once, and revoke the old one."""
    with _stored() as stored:
        made = stored.rotate(key_id, grace_s)
    _show(*made)


def _stored() -> Any:
    from warpsmith import applications

    return applications.load("db.admin.key_admin").stored_keys()


def _limits(form: Any, given: list[str]) -> Any:
    from pydantic import ValidationError

    pairs = [item.partition("=") for item in given]
    try:
        return form.model_validate({name.strip(): value.strip() for name, _, value in pairs})
    except ValidationError as exc:
        first = exc.errors()[0]
        raise InvalidInput(f"--limit {'.'.join(str(p) for p in first['loc'])}", first["msg"]) from exc


def _show(row: Any, key: str) -> None:
    echo(f"key {row.id} of tenant {row.tenant}, for {', '.join(row.scopes)}; {SHOWN_ONCE}", err=True)
    echo(key)
