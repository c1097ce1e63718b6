"""Secrets read from files, and detection of placeholder secrets."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from pydantic import SecretStr

FILE = "_file"
SECRET_FILES = (
    "database_url_file",
    "database_password_file",
    "broker_url_file",
    "api_key_file",
    "openai_api_key_file",
)
"""Settings that name a file; its content is the value of the setting without `_file`."""
NOT_CHOSEN = "change-me"
"""Placeholder for a secret in examples."""


def with_secrets(data: Mapping[str, object]) -> dict[str, object]:
    """Settings extended by the contents of the files that they name; an empty file gives no value.

    Raises:
        ValueError: a file cannot be read, a setting is given twice, or the password has no URL to be put
            into.
    """
    found = dict(data)
    for name in SECRET_FILES:
        path = found.get(name)
        text = _read(name, str(path)) if path else ""
        target = name.removesuffix(FILE)
        if not text:
            continue
        if target == "database_password":
            found["database_url"] = _with_password(str(found.get("database_url") or ""), text)
        elif found.get(target):
            raise ValueError(f"{target} and {name} are both set; keep one")
        else:
            found[target] = text
    return found


def require_chosen(*secrets: str | SecretStr | None) -> None:
    """Check that no secret is the placeholder of an example.

    Raises:
        ValueError: a secret is the placeholder.
    """
    for secret in secrets:
        text = secret.get_secret_value() if isinstance(secret, SecretStr) else secret
        if text is not None and NOT_CHOSEN in text:
            raise ValueError(
                f"a password or key is still {NOT_CHOSEN!r}, as an example shows it; "
                "choose your own: openssl rand -hex 24"
            )


def _read(name: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ValueError(f"{name}: {path} cannot be read ({type(exc).__name__})") from exc


def _with_password(url: str, password: str) -> str:
    """The URL with the password inserted after the user: `postgresql+psycopg://user:password@host/name`."""
    scheme, separator, rest = url.partition("://")
    user, at, where = rest.partition("@")
    if not separator or not at or ":" in user:
        raise ValueError("database_password_file needs a database_url with a user and no password")
    return f"{scheme}://{user}:{quote(password, safe='')}@{where}"
