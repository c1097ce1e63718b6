"""The application with a description that says what errors really look like."""

from typing import Any

from fastapi import FastAPI

from api.problems import MEDIA_TYPE


class DescribedApi(FastAPI):
    """FastAPI documents every error model as `application/json`; ours are problem details."""

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
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
        return schema
