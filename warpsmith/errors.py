"""The error tree. A class is a decision that a caller can make.

WarpsmithError
├── InvalidInput          the user's input is wrong: names the field and the fix
│   └── ExpressionError   an expression does not parse, or does not evaluate
├── Unavailable           this machine lacks something: a driver, a package, a permission
│   ├── ServiceUnreachable          nothing answers at a service's address; start it, or ask again
│   └── StorageUnusable             the data folder or its database cannot be used; mend it, or name another
├── ChildDied             a child process crashed, hung or broke its protocol; replace it
├── DeviceSick            a device fails a kernel of our own; trust nothing it said, and use another
├── KernelRefused         the driver refused a launch or a binary; the child is still well
├── LeaseLost             somebody else owns the work now; drop it
├── NotFound              no such thing for this caller
└── TimedOut              a job has not ended in the time that was given; wait again, or cancel it

A bad kernel is not an error: it is a `Rejected` outcome (see `domain.outcome`).
"""


class WarpsmithError(Exception):
    """Root of everything this package raises on purpose."""


class InvalidInput(WarpsmithError):
    """Input from a user that cannot be accepted.

    Args:
        field: dotted path of the field, as the user wrote it (`kernel.arguments.0.shape`).
        message: what is wrong and how to correct it.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class ExpressionError(InvalidInput):
    """An expression that does not parse or cannot be evaluated."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__("", f"in expression {text!r}: {message}")
        self.text = text


class Unavailable(WarpsmithError):
    """A back end, tool or service that is missing here; the message says what to install or start."""


class ServiceUnreachable(Unavailable):
    """Nothing answers at the address of a service."""


class StorageUnusable(Unavailable):
    """A data folder or database that cannot be used; the message names it and the remedy on one line."""


class ChildDied(WarpsmithError):
    """A child process ended, hung past its deadline or sent something that is not a reply.

    Args:
        cause: `timeout`, `signal`, `exit`, `protocol` or `device` (the device reported a fault).
        detail: what was seen, without anything from the child's environment.
    """

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail


class DeviceSick(WarpsmithError):
    """The device fails a kernel of the service itself; its results for other kernels do not count."""


class KernelRefused(WarpsmithError):
    """The driver refused a launch or a binary; the child process still works."""


class LeaseLost(WarpsmithError):
    """The lease on a task or study has passed to another worker; nothing more may be written."""


class NotFound(WarpsmithError):
    """This caller has no such job, candidate, trial or worker."""


class TimedOut(WarpsmithError, TimeoutError):
    """A job that has not ended in the time that a caller gave it. The job goes on."""
