"""The application with an OpenAPI description that shows the real form of errors."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from api.requests.problems import MEDIA_TYPE


def operation_id(route: APIRoute) -> str:
    """Operation name in generated clients: the name of the function."""
    return route.name


class DescribedApi(FastAPI):
    """Describes errors as problem details; FastAPI would document them as `application/json`."""

    def openapi(self) -> dict[str, Any]:
        """The description, computed once."""
        made_before = self.openapi_schema is not None
        schema = super().openapi()
        if made_before:
            return schema
        operations = (operation for path in schema["paths"].values() for operation in path.values())
        for operation in operations:
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= 400 and "application/json" in content:
                    content[MEDIA_TYPE] = content.pop("application/json")
        for described in _with_defaults({"properties": schema["components"]["schemas"]}):
            _say_default(described)
        return schema


def _with_defaults(schema: Any) -> Iterator[dict[str, Any]]:
    """This schema and those inside it that have an object as default."""
    if isinstance(schema, list):
        for item in schema:
            yield from _with_defaults(item)
    elif isinstance(schema, dict):
        if isinstance(schema.get("default"), dict):
            yield schema
        for keyword, value in schema.items():
            # Keys under `properties` are names of fields, and a field may be called `default`.
            yield from _with_defaults(list(value.values()) if keyword == "properties" else value)


def _say_default(schema: dict[str, Any]) -> None:
    """Describe a default in words: generators of clients drop a model that has an object as default."""
    values = schema.pop("default")
    shown = ", ".join(f"{name}: {value}" for name, value in values.items() if value not in (None, [], {}))
    words = f"By default {shown}." if shown else "Empty by default."
    schema["description"] = " ".join(w for w in (schema.get("description", "").strip(), words) if w)
