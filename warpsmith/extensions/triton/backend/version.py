"""Version of the installed Triton, found without importing it."""

from importlib.metadata import PackageNotFoundError, version


def triton_version() -> str:
    """The installed Triton's version; empty without one."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""
