"""Facts of an engine's table that no job holds: `--table KEY=VALUE`, or the job's labels `table.KEY`."""

import re
from collections.abc import Mapping, Sequence

from warpsmith.errors import InvalidInput
from warpsmith.http_models import JobResult

OPTION = "--table"
LABEL = "table."
"""With which labels of a job begin that stand for such an option."""
_WORD = re.compile(r"[A-Za-z0-9_.-]+")


class TableOptions:
    """Options of an engine's table by key; what is given wins over labels of the job.

    Args:
        form: name of the format, for messages.
        keys: all that it takes, each with a value that would be valid.

    Raises:
        InvalidInput: an option is given that the format does not take. Labels may be there for other formats.
    """

    def __init__(
        self, result: JobResult, given: Mapping[str, str], form: str, keys: Mapping[str, str]
    ) -> None:
        unknown = sorted(set(given) - set(keys))
        if unknown:
            raise InvalidInput(
                OPTION, f"{form} takes no {', '.join(unknown)}; it takes {', '.join(sorted(keys))}"
            )
        labels = {k.removeprefix(LABEL): v for k, v in result.job.labels.items() if k.startswith(LABEL)}
        self._values = {k: v for k, v in labels.items() if k in keys} | dict(given)
        self._keys = keys

    def takes(self, key: str) -> bool:
        """True if the format takes an option."""
        return key in self._keys

    def text(self, key: str) -> str:
        """A value as it was given; empty if it was not."""
        return self._values.get(key, "").strip()

    def word(self, key: str) -> str:
        """A value that becomes a part of a file's name; empty if it was not given.

        Raises:
            InvalidInput: it has other characters than letters, digits, `_`, `.` and `-`.
        """
        found = self.text(key)
        if found and not _WORD.fullmatch(found):
            raise self.problem(key, f"{found!r} cannot be a part of a file's name")
        return found

    def needed(self, key: str, why: str) -> str:
        """A value that has to be there.

        Raises:
            InvalidInput: it was not given; `why` says what it is.
        """
        found = self.text(key)
        if not found:
            raise self.problem(key, f"is missing: {why}")
        return found

    def number(self, key: str, why: str) -> int:
        """A whole number of at least 1 that has to be there.

        Raises:
            InvalidInput: it is missing, or is none.
        """
        return self._whole(key, self.needed(key, why))

    def numbers(self, key: str) -> tuple[int, ...]:
        """Whole numbers of at least 1 with commas between, in brackets or not.

        Raises:
            InvalidInput: one is none.
        """
        parts = [p for p in re.split(r"[\s,]+", self.text(key).strip("[]")) if p]
        return tuple(self._whole(key, p) for p in parts)

    def flag(self, key: str) -> bool:
        """True or false; false if it was not given.

        Raises:
            InvalidInput: it is neither.
        """
        found = self.text(key).lower()
        if found not in ("", "true", "false"):
            raise self.problem(key, f"{found!r} is neither true nor false")
        return found == "true"

    def problem(self, key: str, message: str) -> InvalidInput:
        """An error about an option, with an example of a valid one."""
        example = f"{OPTION} {key}={self._keys.get(key, '...')}"
        return InvalidInput(f"{OPTION} {key}", f"{message}; give {example}, or label the job {LABEL}{key}")

    def _whole(self, key: str, text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]{0,11}", text):
            raise self.problem(key, f"{text!r} is no whole number of at least 1")
        return int(text)


def table_options(given: Sequence[str] | None) -> dict[str, str]:
    """The options of a command line, by key.

    Raises:
        InvalidInput: one is not of the form `KEY=VALUE`, or is given twice.
    """
    found: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise InvalidInput(OPTION, f"{text!r} is no KEY=VALUE, such as E=8")
        if key.strip() in found:
            raise InvalidInput(OPTION, f"{key.strip()} is given twice; give it once")
        found[key.strip()] = value
    return found


def triton_version(result: JobResult, options: TableOptions) -> str:
    """The version of Triton that compiled what was measured: the result's own, or the option `triton`."""
    name, _, version = result.compiler.partition(" ")
    return version if name == "triton" else options.text("triton")
