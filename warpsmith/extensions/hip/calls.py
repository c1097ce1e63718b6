"""Calls of HIP's runtime through hip-python: what they return, and what their errors mean.

Written against hip-python's documented interface; not run on AMD hardware. Every call returns a tuple that
begins with its error. Pointers are given to it as integers, which it takes for each of them.
"""

from typing import Any

from warpsmith import extras
from warpsmith.backends.base import DeviceFault, LaunchRefused
from warpsmith.errors import Unavailable

_REFUSALS = frozenset(
    "hipError" + name
    for name in (
        "InvalidValue",
        "InvalidConfiguration",
        "InvalidImage",
        "InvalidKernelFile",
        "InvalidSource",
        "InvalidDeviceFunction",
        "InvalidSymbol",
        "InvalidClusterSize",
        "NoBinaryForGpu",
        "NotFound",
        "FileNotFound",
        "NotSupported",
        "LaunchOutOfResources",
        "CooperativeLaunchTooLarge",
        "SharedObjectSymbolNotFound",
        "SharedObjectInitFailed",
        "StreamCaptureUnsupported",
    )
)
"""Errors of a launch or of a binary after which the device still works; after any other it may not."""


class HipError(Exception):
    """A call failed; its text is HIP's name of the error, such as hipErrorInvalidValue."""

    def __init__(self, status: Any) -> None:
        super().__init__(str(getattr(status, "name", status)))


def load_hip() -> Any:
    """The module `hip.hip`. Importing it loads no library of ROCm; its first call does.

    Raises:
        Unavailable: hip-python is missing.
    """
    try:
        from hip import hip
    except ImportError as exc:
        raise Unavailable(f"hip: hip-python is missing; {extras.advice('hip')} ({exc})") from exc
    return hip


def values(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values that a call returned after its status.

    Raises:
        HipError: the call failed.
    """
    status, *found = result
    if int(status) != 0:
        raise HipError(status)
    return tuple(found)


def must(result: tuple[Any, ...], words: str) -> tuple[Any, ...]:
    """Values that a call returned after its status, for calls whose failure is a fault of the device.

    Raises:
        DeviceFault: the call failed; the message begins with `words`.
    """
    try:
        return values(result)
    except HipError as exc:
        raise DeviceFault(f"{words}: {exc}") from exc


def refusal_or_fault(exc: HipError, words: str) -> LaunchRefused | DeviceFault:
    """Exception for an error of a launch, or of loading a binary: a refusal of the launch, or a fault."""
    kind = LaunchRefused if str(exc) in _REFUSALS else DeviceFault
    return kind(f"{words}: {exc}")


def text_of(value: Any) -> str:
    """A C string of hip-python: a `str`, `bytes`, or a type of its own that gives bytes."""
    if isinstance(value, str):
        return value.split("\0")[0]
    return bytes(value).split(b"\0")[0].decode(errors="replace")
