"""Which Triton is installed; nothing of it is imported."""

from importlib.metadata import PackageNotFoundError, version


def triton_version() -> str:
    """The installed Triton's version; empty without one."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""
