"""Column types: aware timestamps, value objects, words of an enumeration."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import JSON, DateTime, Dialect, Enum
from sqlalchemy.types import TypeDecorator, TypeEngine

from warpsmith.domain.plain_data import STORED


class UtcDateTime(TypeDecorator[datetime]):
    """An aware timestamp in UTC, on SQLite too, which keeps no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive timestamps; SQLite gets UTC without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a timestamp without a time zone; use datetime.now(UTC)")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Always aware."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class ModelJson(TypeDecorator[Any]):
    """A pydantic value stored as JSON. When it is read its form alone is checked; unknown fields drop out.

    Args:
        name: distinguishes the type in SQLAlchemy's statement cache.
        annotation: what pydantic is to read.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, name: str, annotation: Any) -> None:
        super().__init__()
        self.name = name
        self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """To plain JSON values."""
        return None if value is None else self._adapter.dump_python(value, mode="json")

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Back to the value object."""
        return None if value is None else self._adapter.validate_python(value, context=STORED, extra="ignore")

    def copy(self, **kw: Any) -> "ModelJson":
        """SQLAlchemy copies types; the adapter is shared."""
        copied = ModelJson.__new__(ModelJson)
        copied.__dict__.update(self.__dict__)
        return copied


def words(enumeration: type[StrEnum]) -> TypeEngine[Any]:
    """The values of an enumeration as short text, without a database type of its own."""
    return Enum(
        enumeration,
        native_enum=False,
        create_constraint=False,
        length=16,
        values_callable=lambda e: [member.value for member in e],
    )
