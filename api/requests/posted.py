"""Bodies that a route reads in its own thread, after it has admitted the caller."""

from typing import Any, Generic, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, GetCoreSchemaHandler, ValidationError, ValidatorFunctionWrapHandler
from pydantic_core import CoreSchema, core_schema

from warpsmith.domain.plain_data import data_problem
from warpsmith.errors import InvalidInput

Model = TypeVar("Model", bound=BaseModel)


class Posted(Generic[Model]):
    """A body as it arrived. FastAPI would validate a model in the thread that serves every request."""

    def __init__(self, model: type[Model], data: object) -> None:
        self._model = model
        self.data = data

    def read(self) -> Model:
        """The model.

        Raises:
            InvalidInput: the data are too many, too deep, or have a text with a NUL.
            RequestValidationError: the fields that are wrong.
        """
        problem = data_problem(self.data)
        if problem is not None:
            raise InvalidInput(*problem)
        try:
            return self._model.model_validate(self.data)
        except ValidationError as exc:
            found = [{**e, "loc": ("body", *e["loc"])} for e in exc.errors(include_url=False)]
            raise RequestValidationError(found, body=self.data) from exc

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (model,) = source.__args__

        def wrap(data: object, _validate: ValidatorFunctionWrapHandler) -> "Posted[Any]":
            return cls(model, data)

        # The model's own schema is what describes the body.
        return core_schema.no_info_wrap_validator_function(wrap, handler.generate_schema(model))
